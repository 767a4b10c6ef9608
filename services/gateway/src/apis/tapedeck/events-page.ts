import { eventToJson } from "@tapedeck/shared/events/json";
import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { LogReader, Recorded } from "@tapedeck/shared/log/log";
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

/** How far a `last=N` looks back at first; it doubles until N are found or the log begins. */
const firstWindow = 4_096;

/** A page of history: from `after` on, or the newest N. `nextPage` is the `after` of the page that follows. */
export function eventsPage(log: LogReader, positions: Positions) {
  return async (request: EventsPageRequest): Promise<Page<object>> => {
    const { firstSeq, lastSeq } = await log.bounds();
    const untilSeq = request.until === undefined ? lastSeq : await positions.resolveUntil(request.until);
    const afterSeq = await positions.resolveAfter(request.after);
    const from = { subjects: toSubjects(request.filter, request.workspace), filter: request.filter };
    const toJson = (recorded: Recorded) => eventToJson(recorded, log.epoch, { original: request.original ?? false });

    if (request.last !== undefined) {
      const newest = await newestOf(request.last, Math.max(afterSeq, firstSeq - 1), untilSeq, from, request.signal);
      return { items: newest.map(toJson), position: positions.written(untilSeq) };
    }
    const found: Recorded[] = [];
    for await (const recorded of matching(afterSeq, untilSeq, from, request.signal)) {
      found.push(recorded);
      if (found.length >= request.limit) break;
    }
    const last = found.at(-1);
    const more = last !== undefined && found.length >= request.limit && last.seq < untilSeq;
    const position = positions.written(more && last !== undefined ? last.seq : untilSeq);
    return { items: found.map(toJson), ...(more && { nextPage: position }), position };
  };

  async function newestOf(count: number, afterSeq: number, untilSeq: number, from: From, signal: AbortSignal) {
    for (let window = Math.max(firstWindow, count); ; window *= 8) {
      const begin = Math.max(afterSeq, untilSeq - window);
      const found: Recorded[] = [];
      for await (const recorded of matching(begin, untilSeq, from, signal)) {
        found.push(recorded);
        if (found.length > count) found.shift();
      }
      if (found.length >= count || begin === afterSeq) return found;
    }
  }

  async function* matching(afterSeq: number, untilSeq: number, { subjects, filter }: From, signal: AbortSignal) {
    if (untilSeq <= afterSeq) return;
    for await (const recorded of log.history({ afterSeq, subjects }, untilSeq, signal)) {
      if (matches(filter, recorded.event)) yield recorded;
    }
  }
}

type From = { readonly subjects: readonly string[]; readonly filter: Filter };
