import type { Filter } from "@tapedeck/shared/filter/filter";
import { largestPage } from "@tapedeck/shared/largest-page";
import { type HeldEvent, type LogReader, LogReplacedError, type ReadFrom } from "@tapedeck/shared/log/log";
import {
  earlierOf,
  endOf,
  justBefore,
  laterOf,
  mayHoldEvents,
  messagesBetween,
  type Offset,
  sequenceOf,
} from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { subjectMatcher } from "@tapedeck/shared/log/subject-match";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { type EventFinder, type FoundOffsets, findOffsets, type HistoryRange } from "./find-offsets.ts";

/** The fields of which the subjects of messages say nothing, or too little. */
const indexedFields = ["sessions", "kinds", "subjects", "outcomes"] as const satisfies (keyof Filter)[];

export type IndexLimits = {
  /** Fewer messages than these are read rather than looked up. */
  readonly shortHistory: number;
  readonly pageSize: number;
};

const defaultLimits: IndexLimits = { shortHistory: 1_000, pageSize: largestPage };

/** Looking up this many events takes as long as reading a message of the log. */
const eventsPerMessage = 16;

/** The log has what query does not say within this time. */
const timeoutMs = 2_000;

export type IndexedFilter = { readonly workspace: string; readonly filter: Filter };

/**
 * The log for a reader of one filter. Its history comes from query's index of the log where that has few messages to read.
 * The log is read for the rest: what query has not reached, what comes from now on, and all of it while query can't answer.
 *
 * A filter of places alone (developers, projects, upstreams, sources) is not looked up, as all events of the messages whose
 * subjects it selects match it.
 */
export function indexedLog(
  log: LogReader,
  query: EventFinder,
  filter: IndexedFilter,
  limits: IndexLimits = defaultLimits,
): LogReader {
  if (indexedFields.every((field) => filter.filter[field] === undefined)) return log;
  const history = new IndexedHistory(log, query, filter, limits);
  return {
    ...log,
    async *followBatches(from, options) {
      const afterOffset = yield* history.batches(from, options);
      yield* log.followBatches({ ...from, afterOffset }, options);
    },
    async *historyBatches(from, untilOffset, signal) {
      const afterOffset = yield* history.batches(from, { untilOffset, signal });
      if (mayHoldEvents(afterOffset, untilOffset)) {
        yield* log.historyBatches({ ...from, afterOffset }, untilOffset, signal);
      }
    },
  };
}

type HistoryOptions = {
  readonly untilOffset?: Offset;
  readonly signal: AbortSignal;
  /** See FollowOptions. */
  readonly reached?: (offset: Offset) => void;
};

/** The offsets of the next events. All that matches up to `upTo` is among them. */
type IndexPage = Pick<FoundOffsets, "offsets"> & { readonly upTo: Offset; readonly isLast: boolean };

/** History page by page of the index: each page has what follows the last event of the one before. */
class IndexedHistory {
  readonly #log: LogReader;
  readonly #query: EventFinder;
  readonly #filter: IndexedFilter;
  readonly #limits: IndexLimits;

  constructor(log: LogReader, query: EventFinder, filter: IndexedFilter, limits: IndexLimits) {
    [this.#log, this.#query, this.#filter, this.#limits] = [log, query, filter, limits];
  }

  /** Ends with the offset after which the log is to be read: every match up to there was delivered. */
  async *batches(
    from: ReadFrom,
    { untilOffset, signal, reached }: HistoryOptions,
  ): AsyncGenerator<readonly HeldEvent[], Offset> {
    const range = await this.#rangeOf(from, untilOffset);
    const { subjects } = from;
    const ask = (afterOffset: Offset) => this.#ask({ ...range, afterOffset }, signal);
    let done = range.afterOffset;
    let pending = ask(done);
    for (let page = await pending; page !== undefined && !signal.aborted; page = await pending) {
      const { offsets, upTo, isLast } = page;
      if (costOf(offsets) < messagesBetween(done, upTo)) {
        // Query looks for the next page meanwhile.
        pending = isLast ? unknown : ask(upTo);
        done = yield* this.#look({ offsets, upTo, done, subjects }, signal);
        if (done !== upTo) break;
      } else {
        if (isLast) break;
        const end = earlierOf(range.untilOffset, endOf(sequenceOf(upTo) + this.#limits.shortHistory));
        yield* this.#log.historyBatches({ subjects, afterOffset: done }, end, signal);
        done = end;
        pending = ask(done);
      }
      if (!signal.aborted) reached?.(done);
    }
    return done;
  }

  /**
   * What the log keeps of the range, up to its present end. Nothing while the log is unavailable, because only reading waits for it.
   * @throws OutOfRangeError when the log has dropped the beginning
   */
  async #rangeOf({ afterOffset }: ReadFrom, untilOffset?: Offset): Promise<HistoryRange> {
    try {
      await this.#log.assertRetained(afterOffset);
      const { firstOffset, lastOffset } = await this.#log.bounds();
      return {
        afterOffset: laterOf(afterOffset, justBefore(firstOffset)),
        untilOffset: earlierOf(untilOffset ?? lastOffset, lastOffset),
      };
    } catch (error) {
      if (error instanceof OutOfRangeError) throw error;
      return { afterOffset, untilOffset: afterOffset };
    }
  }

  /** Undefined where the log is to be read: the rest is short, or query can't answer, for whatever reason. */
  async #ask(range: HistoryRange, signal: AbortSignal): Promise<IndexPage | undefined> {
    const { shortHistory, pageSize } = this.#limits;
    const { afterOffset, untilOffset } = range;
    if (messagesBetween(afterOffset, untilOffset) < shortHistory) return undefined;
    const filter = { ...this.#filter, ...range, limit: pageSize, newest: false };
    const deadline = AbortSignal.any([signal, timeoutSignal(timeoutMs)]);
    const found = await abortable(findOffsets(this.#log, this.#query, filter), deadline).catch(() => undefined);
    if (found === undefined) return undefined;
    const { offsets, reached } = found;
    const last = offsets.length < pageSize ? undefined : offsets.at(-1);
    const upTo = last ?? laterOf(afterOffset, earlierOf(reached, untilOffset));
    return { offsets, upTo, isLast: last === undefined };
  }

  /** Ends with `upTo`, or where the log could not be read further. */
  async *#look(
    {
      offsets,
      upTo,
      done,
      subjects,
    }: Pick<IndexPage, "offsets" | "upTo"> & { done: Offset; subjects: readonly string[] },
    signal: AbortSignal,
  ): AsyncGenerator<readonly HeldEvent[], Offset> {
    const matches = subjectMatcher(subjects);
    const afterOffset = done;
    let found = 0;
    try {
      for await (const batch of this.#log.readBatches(offsets, signal)) {
        found += batch.length;
        // The log's own history compares the subjects, too. They say the workspace.
        const events = batch.filter(({ subject }) => matches(subject.split(".")));
        if (events.length > 0) yield events;
        done = (batch.at(-1) as HeldEvent).offset;
      }
      if (found < offsets.length && !signal.aborted) await this.#log.assertRetained(afterOffset);
      return upTo;
    } catch (error) {
      if (error instanceof LogReplacedError || error instanceof OutOfRangeError) throw error;
      return done;
    }
  }
}

const unknown = Promise.resolve(undefined);

/** In messages of the log that could be read instead. */
function costOf(offsets: readonly Offset[]): number {
  return new Set(offsets.map(sequenceOf)).size + offsets.length / eventsPerMessage;
}
