import type { HeldBatches, HeldEvent, LogReader, ReadFrom } from "../log.ts";
import { firstMessageAfter, laterOf, type Offset, sequenceOf } from "../offset.ts";
import { lostInHole } from "../out-of-range.ts";
import { subjectMatcher } from "../subject-match.ts";
import { sourceFilter } from "../subjects.ts";
import type { KnownHole } from "./known-holes.ts";

/** How many tokens of a subject say the source. */
const sourceTokens = 6;

/** What a reader reads. `sessions`: nothing else; empty or undefined: of all. */
export type ReadPart = ReadFrom & { readonly sessions?: readonly string[] | undefined };

/** The hole that a reader comes to next; undefined: there is none up to the offset. */
export function nextHole(
  holes: readonly KnownHole[],
  { afterOffset, subjects, sessions = [] }: ReadPart,
  untilOffset: Offset,
): KnownHole | undefined {
  if (holes.length === 0) return undefined; // nearly always
  const [next, end] = [firstMessageAfter(afterOffset), sequenceOf(untilOffset)];
  const matches = subjectMatcher(subjects.map(placeOf));
  const ahead = holes.filter(
    ({ source, sessions: around, first, last }) =>
      next <= last &&
      first <= end &&
      matches(placeOf(sourceFilter(source)).split(".")) &&
      (sessions.length === 0 || around.some((session) => sessions.includes(session))),
  );
  return ahead.toSorted((a, b) => a.last - b.last)[0];
}

function placeOf(subject: string): string {
  return subject.split(".", sourceTokens).join(".");
}

/**
 * The log with `historyBatches` and `followBatches` that end with an OutOfRangeError at each hole of a source and session
 * that is read, after all that is left up to there. `holes`: those that are known now. What was read before it was lost is
 * no hole for this reader.
 */
export function reportHoles(
  log: LogReader,
  holes: () => readonly KnownHole[],
  sessions?: readonly string[],
): LogReader {
  return {
    ...log,
    async *historyBatches(from, untilOffset, signal) {
      const check = new HoleCheck(log.epoch, holes, { ...from, sessions });
      yield* check.through(log.historyBatches(from, untilOffset, signal));
      if (!signal.aborted) check.passTo(untilOffset);
    },
    async *followBatches(from, options) {
      const check = new HoleCheck(log.epoch, holes, { ...from, sessions });
      const left = new AbortController();
      let failure: { readonly error: unknown } | undefined;
      const behindHoles = (report: ((offset: Offset) => void) | undefined) => (offset: Offset) => {
        try {
          check.passTo(offset);
          report?.(offset);
        } catch (error) {
          failure ??= { error };
          left.abort();
        }
      };
      const { caughtUp, reached, signal } = options;
      const following = log.followBatches(from, {
        signal: AbortSignal.any([signal, left.signal]),
        reached: behindHoles(reached),
        ...(caughtUp && { caughtUp: behindHoles(caughtUp) }),
      });
      yield* check.through(following);
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** How far a reader has come, and which hole is next. */
class HoleCheck {
  readonly #epoch: string;
  readonly #holes: () => readonly KnownHole[];
  readonly #part: ReadPart;
  #done: Offset;

  constructor(epoch: string, holes: () => readonly KnownHole[], part: ReadPart) {
    [this.#epoch, this.#holes, this.#part, this.#done] = [epoch, holes, part, part.afterOffset];
  }

  async *through(batches: HeldBatches): HeldBatches {
    for await (const batch of batches) {
      const { offset } = batch.at(-1) as HeldEvent;
      const hole = this.#next(offset);
      const beforeHole = hole === undefined ? batch : batch.filter((held) => sequenceOf(held.offset) <= hole.last);
      if (beforeHole.length > 0) yield beforeHole;
      // The hole continues after the batch.
      if (hole === undefined || beforeHole.length === batch.length) this.#done = laterOf(this.#done, offset);
      else throw lostInHole(this.#epoch, hole);
    }
  }

  /** @throws OutOfRangeError when there is a hole up to the offset */
  passTo(offset: Offset): void {
    const hole = this.#next(offset);
    if (hole !== undefined) throw lostInHole(this.#epoch, hole);
    this.#done = laterOf(this.#done, offset);
  }

  #next(untilOffset: Offset): KnownHole | undefined {
    return nextHole(this.#holes(), { ...this.#part, afterOffset: this.#done }, untilOffset);
  }
}
