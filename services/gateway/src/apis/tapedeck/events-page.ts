import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type EventJson, eventToJson } from "@tapedeck/shared/events/json";
import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { justBefore, laterOf, mayHoldEvents, messagesBefore, type Offset } from "@tapedeck/shared/log/offset";
import type { TimedSemaphore } from "../../limits/semaphore.ts";
import type { Positions } from "../../positions.ts";
import type { Page } from "./lists.ts";

export type EventsPageRequest = {
  readonly workspace: string;
  readonly filter: Filter;
  readonly after: string;
  readonly until?: string;
  /** Most events in the page. */
  readonly limit: number;
  /** The newest N instead, ascending. */
  readonly last?: number;
  readonly original?: boolean;
  readonly signal: AbortSignal;
};

/** How many messages of the log the search for `last=N` covers at first; it grows until N are found or the log begins. */
const firstWindow = 4_096;

/** A page ends when its texts and originals are larger than this together, or when reading it took longer. */
const mostBytes = 16 << 20;
const longestMs = 10_000;

/**
 * A page of history: from `after` on, or the newest N. `nextPage` is the `after` of the next page. A page may have fewer
 * events than asked for, or none, and still have a next page.
 */
export function eventsPage(
  log: () => LogReader,
  positions: Positions,
  permits: TimedSemaphore,
): (request: EventsPageRequest) => Promise<Page<EventJson>> {
  const pages = new EventPages(log, positions);
  return async (request) => {
    const release = await permits.acquire(request.signal);
    try {
      return await pages.page(request);
    } finally {
      release();
    }
  };
}

class EventPages {
  readonly #log: () => LogReader;
  readonly #positions: Positions;

  constructor(log: () => LogReader, positions: Positions) {
    this.#log = log;
    this.#positions = positions;
  }

  async page(request: EventsPageRequest): Promise<Page<EventJson>> {
    const { firstOffset, lastOffset } = await this.#log().bounds();
    const end = request.until === undefined ? lastOffset : await this.#positions.resolveUntil(request.until);
    const afterOffset = await this.#positions.resolveAfter(request.after);
    // An end before the beginning must not lead a client that continues from here back.
    const untilOffset = laterOf(afterOffset, end);
    if (request.last !== undefined) {
      return this.#newest(request, request.last, laterOf(afterOffset, justBefore(firstOffset)), untilOffset);
    }
    const items: EventJson[] = [];
    let bytes = 0;
    let seen = afterOffset;
    const begun = performance.now();
    for await (const { recorded, json } of this.#read(request, afterOffset, untilOffset)) {
      seen = recorded.offset;
      if (json !== undefined) items.push(json);
      bytes += sizeOf(json, recorded);
      const isFull = items.length >= request.limit || bytes >= mostBytes || performance.now() - begun >= longestMs;
      if (isFull && mayHoldEvents(seen, untilOffset)) {
        const nextPage = this.#positions.written(seen);
        return { items, nextPage, position: nextPage };
      }
    }
    return { items, position: this.#positions.written(untilOffset) };
  }

  async #newest(request: EventsPageRequest, count: number, afterOffset: Offset, untilOffset: Offset) {
    for (let window = Math.max(firstWindow, count); ; window *= 8) {
      const begin = laterOf(afterOffset, messagesBefore(untilOffset, window));
      const items: EventJson[] = [];
      const sizes: number[] = [];
      let bytes = 0;
      for await (const { recorded, json } of this.#read(request, begin, untilOffset)) {
        if (json === undefined) continue;
        const size = sizeOf(json, recorded);
        items.push(json);
        sizes.push(size);
        bytes += size;
        if (items.length > count) {
          items.shift();
          bytes -= sizes.shift() ?? 0;
        }
        if (bytes >= mostBytes) throw tooMuch();
      }
      if (items.length >= count || begin === afterOffset)
        return { items, position: this.#positions.written(untilOffset) };
    }
  }

  /** Renders matching events at once, so that a page holds no originals that it does not show. */
  async *#read({ workspace, filter, original = false, signal }: EventsPageRequest, afterOffset: Offset, until: Offset) {
    if (until <= afterOffset) return;
    // A reader waits while the log is away. A request for a page gets an error instead.
    const late = AbortSignal.timeout(2 * longestMs);
    const from = { afterOffset, subjects: toSubjects(filter, workspace) };
    const reader = this.#log();
    for await (const recorded of reader.history(from, until, AbortSignal.any([signal, late]))) {
      const isWanted = matches(filter, recorded.event);
      yield { recorded, json: isWanted ? eventToJson(recorded, reader.epoch, { original }) : undefined };
    }
    if (late.aborted) throw new TapedeckError("not_ready", "the log did not answer in time: try again in a moment");
  }
}

/** Counts the parts of an event that can be large. */
function sizeOf(json: EventJson | undefined, { event }: RecordedEvent): number {
  if (json === undefined) return 0;
  const text = event.detail?.$case === "text" ? event.detail.value.text.length : 0;
  return text + (json.original === undefined ? 0 : (event.original?.bytes.byteLength ?? 0));
}

function tooMuch(): TapedeckError {
  const message = `so many events are larger than ${mostBytes >> 20} MiB: ask for fewer, or stream them`;
  return new TapedeckError("limit_exceeded", message, { field: "last" });
}
