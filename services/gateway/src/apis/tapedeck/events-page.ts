import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type EventJson, eventToJson } from "@tapedeck/shared/events/json";
import type { Filter } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import { nextHole } from "@tapedeck/shared/log/holes/report-holes";
import type { PageReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { earlierOf, endOf, justBefore, laterOf, messagesBetween, type Offset } from "@tapedeck/shared/log/offset";
import { lostInHole, type OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import type { TimedSemaphore } from "../../limits/semaphore.ts";
import type { Positions } from "../../positions.ts";
import { FoundEvents } from "./find-events.ts";
import type { Page } from "./lists.ts";
import type { EventFinder, HistoryRange } from "./log-index/find-offsets.ts";

export type EventsPageRequest = {
  readonly workspace: string;
  readonly filter: Filter;
  readonly after: string;
  readonly until?: string;
  /** Most events in the page. */
  readonly limit: number;
  /** The newest N instead, ascending. */
  readonly last?: number;
  /** With `last`: where they are too large together, the newest that are not, instead of an error. */
  readonly orFewer?: boolean;
  readonly original?: boolean;
  readonly signal: AbortSignal;
};

/** `isCut`: it has fewer events than were asked for, because they are too large together. */
export type EventsPage = Page<EventJson> & { readonly isCut?: boolean };

/** A page ends when its texts and originals are larger than this together, or when reading it took longer. */
const maxBytes = 16 << 20;
const longestMs = 10_000;

export type EventsPageDeps = {
  readonly log: () => PageReader;
  readonly positions: Positions;
  readonly query: EventFinder;
  /** What the log has lost: a page ends before a hole, and the next one is an error that says where to go on. */
  readonly holes: () => readonly KnownHole[];
};

/**
 * A page of history: from `after` on, or the newest N. `nextPage` is the `after` of the next page. A page may have fewer
 * events than asked for, or none, and still have a next page.
 */
export function eventsPage(
  deps: EventsPageDeps,
  permits: TimedSemaphore,
): (request: EventsPageRequest) => Promise<EventsPage> {
  return async (request) => {
    const release = await permits.acquire(request.signal);
    try {
      return await page(deps, request);
    } finally {
      release();
    }
  };
}

async function page({ log, positions, query, holes }: EventsPageDeps, request: EventsPageRequest): Promise<EventsPage> {
  const reader = log();
  const { firstOffset, lastOffset } = await reader.bounds();
  const end = request.until === undefined ? lastOffset : await positions.resolveUntil(request.until);
  const afterOffset = await positions.resolveAfter(request.after);
  // An end before the beginning must not lead a client that continues from here back.
  const range = { afterOffset, untilOffset: laterOf(afterOffset, end) };
  const events = new FoundEvents(reader, query, request);
  const { original = false, limit, last, orFewer = false } = request;
  // Rendered at once, so that a page holds no originals that it does not show.
  const render = (recorded: RecordedEvent) => eventToJson(recorded, reader.epoch, { original });
  if (last === undefined) {
    const { sessions } = request.filter;
    const from = { afterOffset, subjects: toSubjects(request.filter, request.workspace), sessions };
    const hole = nextHole(holes(), from, range.untilOffset);
    const options = { limit, render, written: positions.written };
    if (hole === undefined) return firstOf(events, range, options);
    const page = await firstOf(
      events,
      { afterOffset, untilOffset: earlierOf(range.untilOffset, endOf(hole.last)) },
      options,
    );
    return page.nextPage === undefined ? beforeHole(page, lostInHole(reader.epoch, hole)) : page;
  }
  const known = { ...range, afterOffset: laterOf(afterOffset, justBefore(firstOffset)) };
  const { items, isCut } = await newestOf(events, known, last, render);
  if (isCut && !orFewer) throw tooMuch();
  return { items, position: positions.written(range.untilOffset), ...(isCut && { isCut }) };
}

/** Has all that is left up to the end of a hole. */
function beforeHole({ items }: Page<EventJson>, loss: OutOfRangeError): Page<EventJson> {
  const position = items.at(-1)?.position;
  if (position === undefined) throw loss;
  return { items, nextPage: position, position };
}

type Render = (recorded: RecordedEvent) => EventJson;

async function firstOf(
  events: FoundEvents,
  range: HistoryRange,
  { limit, render, written }: { limit: number; render: Render; written: (offset: Offset) => string },
): Promise<Page<EventJson>> {
  const items: EventJson[] = [];
  let bytes = 0;
  const startedAt = performance.now();
  let seen = range.afterOffset;
  let isFull = false;
  const pageTo = (end: Offset) => ({ items, nextPage: written(end), position: written(end) });
  for await (const { offset, recorded } of events.first(range, limit)) {
    if (isFull && offset > seen) return pageTo(seen);
    seen = offset;
    if (recorded !== undefined) {
      const json = render(recorded);
      items.push(json);
      bytes += sizeOf(json, recorded);
    }
    isFull = items.length >= limit || bytes >= maxBytes || performance.now() - startedAt >= longestMs;
    // Whether the last message holds more is known when it is read to its end.
    if (isFull && messagesBetween(seen, range.untilOffset) > 0) return pageTo(seen);
  }
  return { items, position: written(range.untilOffset) };
}

async function newestOf(
  events: FoundEvents,
  range: HistoryRange,
  count: number,
  render: Render,
): Promise<{ readonly items: EventJson[]; readonly isCut: boolean }> {
  const newestFirst: EventJson[] = [];
  let bytes = 0;
  for await (const run of events.newest(range, count)) {
    for (const recorded of run.toReversed()) {
      const json = render(recorded);
      bytes += sizeOf(json, recorded);
      if (bytes >= maxBytes && newestFirst.length > 0) return { items: newestFirst.toReversed(), isCut: true };
      newestFirst.push(json);
    }
  }
  return { items: newestFirst.toReversed(), isCut: false };
}

/** Counts the parts of an event that can be large. */
function sizeOf(json: EventJson | undefined, { event }: RecordedEvent): number {
  if (json === undefined) return 0;
  const text = event.detail?.$case === "text" ? event.detail.value.text.length : 0;
  return text + (json.original === undefined ? 0 : (event.original?.bytes.byteLength ?? 0));
}

function tooMuch(): TapedeckError {
  const reason = `these events exceed ${maxBytes >> 20} MiB: request fewer`;
  return new TapedeckError("limit_exceeded", reason, { field: "last" }, { hint: ", or stream them" });
}
