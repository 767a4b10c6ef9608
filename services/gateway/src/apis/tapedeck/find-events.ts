import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { PageReader, RecordedEvent } from "@tapedeck/shared/log/log";
import {
  earlierOf,
  justBefore,
  laterOf,
  mayHoldEvents,
  messagesBefore,
  type Offset,
  type Sequence,
  sequenceOf,
} from "@tapedeck/shared/log/offset";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { type EventFinder, findOffsets, type HistoryRange } from "./log-index/find-offsets.ts";

type EventSearch = { readonly workspace: string; readonly filter: Filter; readonly signal: AbortSignal };

/** How many messages of the log the search for the newest ones covers at first; it grows until there are enough. */
const firstWindow = 256;

/** A batch ends at this many messages, because they may be large, or this many events, which are rendered in one turn. */
const longestRun = { messages: 16, events: 256 };

const longestReadMs = 20_000;

/**
 * Finds the events of a filter. Query knows where they are, up to its checkpoint; the log has them, and the later ones.
 * While query can't answer, all are searched for in the log, which takes longer where little matches.
 */
export class FoundEvents {
  readonly #log: PageReader;
  readonly #query: EventFinder;
  readonly #search: EventSearch;

  constructor(log: PageReader, query: EventFinder, search: EventSearch) {
    this.#log = log;
    this.#query = query;
    this.#search = search;
  }

  /** Passes through the range from its beginning. `recorded` is absent where nothing matches up to the position. */
  async *first(
    { afterOffset, untilOffset }: HistoryRange,
    limit: number,
  ): AsyncGenerator<{ readonly offset: Offset; readonly recorded?: RecordedEvent }, void> {
    let done = afterOffset;
    // Without a filter the log has what is wanted next.
    let isKnown = Object.keys(this.#search.filter).length > 0;
    while (isKnown && mayHoldEvents(done, untilOffset)) {
      const { offsets, reached } = await this.#ask({ afterOffset: done, untilOffset }, limit, false);
      let found = 0;
      for await (const recorded of this.#read(offsets)) {
        found++;
        yield { offset: recorded.offset, recorded };
      }
      if (found < offsets.length) await this.#log.assertRetained(done);
      isKnown = offsets.length === limit;
      done = laterOf(done, (isKnown ? offsets.at(-1) : undefined) ?? earlierOf(reached, untilOffset));
      yield { offset: done };
    }
    for await (const recorded of this.#history({ afterOffset: done, untilOffset })) {
      const { offset } = recorded;
      yield this.#matches(recorded) ? { offset, recorded } : { offset };
    }
  }

  /** The newest events of the range, in runs: the newest run first, each in the order of the log. */
  async *newest(range: HistoryRange, limit: number): AsyncGenerator<readonly RecordedEvent[], void> {
    let missing = limit;
    for await (const offsets of this.#newestOffsets(range, limit)) {
      const left = [...offsets];
      // Some may be gone from the log meanwhile.
      while (missing > 0 && left.length > 0) {
        const run = await Array.fromAsync(this.#read(left.splice(-newestRun(left, missing))));
        missing -= run.length;
        yield run;
      }
      if (missing === 0) return;
    }
  }

  async *#newestOffsets(
    { afterOffset, untilOffset }: HistoryRange,
    limit: number,
  ): AsyncGenerator<readonly Offset[], void> {
    let { offsets, reached } = await this.#ask({ afterOffset, untilOffset }, limit, true);
    yield await this.#newestOfLog({ afterOffset: laterOf(afterOffset, reached), untilOffset }, limit);
    for (;;) {
      yield offsets;
      const [oldest] = offsets;
      if (oldest === undefined || offsets.length < limit) return;
      ({ offsets, reached } = await this.#ask({ afterOffset, untilOffset: justBefore(oldest) }, limit, true));
    }
  }

  async #newestOfLog({ afterOffset, untilOffset }: HistoryRange, limit: number): Promise<readonly Offset[]> {
    let offsets: Offset[] = [];
    let begin = untilOffset;
    for (let window = firstWindow; offsets.length < limit && mayHoldEvents(afterOffset, begin); window *= 8) {
      const end = begin;
      begin = laterOf(afterOffset, messagesBefore(end, window));
      const found: Offset[] = [];
      for await (const recorded of this.#history({ afterOffset: begin, untilOffset: end })) {
        if (this.#matches(recorded)) found.push(recorded.offset);
      }
      offsets = [...found, ...offsets];
    }
    return offsets.slice(-limit);
  }

  /** Query's answer; while it can't answer, nothing, up to the beginning. */
  async #ask({ afterOffset, untilOffset }: HistoryRange, limit: number, newest: boolean) {
    const { workspace, filter } = this.#search;
    const search = { workspace, filter, afterOffset, untilOffset, limit, newest };
    const found = mayHoldEvents(afterOffset, untilOffset) && (await findOffsets(this.#log, this.#query, search));
    return found || { offsets: [], reached: afterOffset };
  }

  async *#read(offsets: readonly Offset[]): AsyncGenerator<RecordedEvent, void> {
    for await (const recorded of this.#log.read(offsets, this.#search.signal)) {
      if (this.#matches(recorded)) yield recorded;
    }
  }

  async *#history({ afterOffset, untilOffset }: HistoryRange): AsyncGenerator<RecordedEvent, void> {
    if (!mayHoldEvents(afterOffset, untilOffset)) return;
    const { workspace, filter, signal } = this.#search;
    // A reader waits while the log is unavailable. A request for a page gets an error instead.
    const late = timeoutSignal(longestReadMs);
    const from = { afterOffset, subjects: toSubjects(filter, workspace) };
    yield* this.#log.history(from, untilOffset, AbortSignal.any([signal, late]));
    if (late.aborted) throw new TapedeckError("not_ready", "the log did not answer in time: try again in a moment");
  }

  /** Also of what query found: it compares long names by their hashes, and the log may have been replaced since. */
  #matches({ event }: RecordedEvent): boolean {
    const { workspace, filter } = this.#search;
    return event.source.startsWith(`${workspace}/`) && matches(filter, event);
  }
}

/** How many of the last offsets are given at once, and `max` at most. Their messages are read once, but for the first one. */
function newestRun(offsets: readonly Offset[], max: number): number {
  const sequences = new Set<Sequence>();
  let events = 0;
  for (const offset of offsets.slice(-Math.min(max, longestRun.events)).toReversed()) {
    sequences.add(sequenceOf(offset));
    if (sequences.size > longestRun.messages) break;
    events++;
  }
  return events;
}
