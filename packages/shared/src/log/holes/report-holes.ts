import { passedOn } from "../../sync/passed-on.ts";
import type { HeldEvent, LogReader, ReadFrom } from "../log.ts";
import { firstMessageAfter, laterOf, type Offset, sequenceOf } from "../offset.ts";
import { lostInHole, type OutOfRangeError } from "../out-of-range.ts";
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
    historyBatches(from, untilOffset, signal) {
      const check = new HoleCheck(log.epoch, holes, { ...from, sessions });
      return passedOn(() => log.historyBatches(from, untilOffset, signal), {
        onNext: () => check.throwLost(),
        onValue: (batch) => check.through(batch),
        onDone() {
          if (!signal.aborted) check.passTo(untilOffset);
        },
      });
    },
    followBatches(from, options) {
      const check = new HoleCheck(log.epoch, holes, { ...from, sessions });
      // What a report throws ends the stream.
      const behindHoles = (report: ((offset: Offset) => void) | undefined) => (offset: Offset) => {
        check.passTo(offset);
        report?.(offset);
      };
      const { caughtUp, reached } = options;
      const follow = () =>
        log.followBatches(from, {
          ...options,
          reached: behindHoles(reached),
          ...(caughtUp && { caughtUp: behindHoles(caughtUp) }),
        });
      return passedOn(follow, { onNext: () => check.throwLost(), onValue: (batch) => check.through(batch) });
    },
  };
}

/** How far a reader has come, and which hole is next. */
class HoleCheck {
  readonly #epoch: string;
  readonly #holes: () => readonly KnownHole[];
  readonly #part: ReadPart;
  #done: Offset;
  #lost: OutOfRangeError | undefined;

  constructor(epoch: string, holes: () => readonly KnownHole[], part: ReadPart) {
    [this.#epoch, this.#holes, this.#part, this.#done] = [epoch, holes, part, part.afterOffset];
  }

  /**
   * What of the batch is before the next hole. The rest is lost: `throwLost` says so.
   * @throws OutOfRangeError when nothing is
   */
  through(batch: readonly HeldEvent[]): readonly HeldEvent[] {
    const { offset } = batch.at(-1) as HeldEvent;
    const hole = this.#next(offset);
    const beforeHole = hole === undefined ? batch : batch.filter((held) => sequenceOf(held.offset) <= hole.last);
    // The hole continues after the batch.
    if (hole === undefined || beforeHole.length === batch.length) this.#done = laterOf(this.#done, offset);
    else this.#lost = lostInHole(this.#epoch, hole);
    if (beforeHole.length === 0) this.throwLost();
    return beforeHole;
  }

  /** @throws OutOfRangeError when something of the last batch was lost */
  throwLost(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** @throws OutOfRangeError when there is a hole up to the offset */
  passTo(offset: Offset): void {
    const hole = this.#next(offset);
    if (hole !== undefined) throw lostInHole(this.#epoch, hole);
    this.#done = laterOf(this.#done, offset);
  }

  #next(untilOffset: Offset): KnownHole | undefined {
    const holes = this.#holes();
    if (holes.length === 0) return undefined; // nearly always
    return nextHole(holes, { ...this.#part, afterOffset: this.#done }, untilOffset);
  }
}
