import type { Session, TapedeckEvent } from "@tapedeck/client";
import { foldLoops, withoutOpen } from "@tapedeck/client/lanes/now";
import type { Loop } from "@tapedeck/client/lanes/step";
import { timeOf } from "@tapedeck/client/lanes/step";
import { type EventLine, foldRows } from "./event-rows.ts";

/** A session's events in order, as rows of a list, and the loops among them. */
export type SessionRecord = {
  readonly events: readonly TapedeckEvent[];
  readonly rows: readonly EventLine[];
  readonly loops: readonly Loop[];
  /** The time of the event that happened first, which may be recorded later than others. Infinity: there is none. */
  readonly since: number;
  /** Why it is over; undefined: more may come. */
  readonly ended: string | undefined;
};

export const emptySession: SessionRecord = {
  events: [],
  rows: [],
  loops: [],
  since: Number.POSITIVE_INFINITY,
  ended: undefined,
};

/** Why a session is over; undefined: more may come. An end that was not seen has a reason and no time. */
export function endOf({ endedAt, endReason }: Pick<Session, "endedAt" | "endReason">): string | undefined {
  return endedAt === null && endReason === null ? undefined : (endReason ?? "unknown");
}

/** The last loops are kept whole; `max` is past what a day of saving files makes. */
export function foldSession(record: SessionRecord, events: readonly TapedeckEvent[], max = 5_000): SessionRecord {
  // Channels repeat the same fact as mirrors, which add nothing.
  const visible = events.filter(({ kind }) => kind !== "mirror.received");
  let { loops, since, ended } = record;
  for (const event of visible) {
    since = Math.min(since, timeOf(event));
    if (event.kind === "session.ended" || event.kind === "session.lost") {
      loops = withoutOpen(loops, event);
      ended = event.detail?.reason || "unknown";
    } else {
      if (event.kind === "upstream.restored") ended = undefined;
      loops = foldLoops(loops, event, max);
    }
  }
  return { events: record.events.concat(visible), rows: foldRows(record.rows, visible), loops, since, ended };
}

/** Where a position is among events: the last one that is not after it. Positions sort as text. */
export function indexAt(events: readonly Pick<TapedeckEvent, "position">[], position: string): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((events[middle]?.position ?? "") <= position) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The loop that was running, or had run last, at a position. */
export function loopAt(loops: readonly Loop[], position: string): Loop | undefined {
  return loops.findLast((loop) => loop.position <= position);
}

/** The loops that had begun at a position, oldest first; one that was running then has not ended. */
export function loopsAt(loops: readonly Loop[], position: string): readonly Loop[] {
  return loops
    .filter((loop) => loop.position <= position)
    .map((loop) => ((loop.endPosition ?? "") > position ? { ...loop, endedAt: undefined } : loop));
}

/** Longer pauses are cut when a session is played. */
const longestPauseMs = 2_000;

/** How long the event after `index` waits when the session is played at a speed. */
export function pauseAfter(events: readonly TapedeckEvent[], index: number, speed: number): number {
  const [event, next] = [events[index], events[index + 1]];
  if (event === undefined || next === undefined) return 0;
  return Math.min(longestPauseMs, Math.max(0, timeOf(next) - timeOf(event))) / speed;
}

/** Words, and `kind:`, `subject:` and `outcome:` with a value as in the API's filter: `kind:build.* api`. */
export function matching(rows: readonly EventLine[], query: string): readonly EventLine[] {
  const terms = query
    .toLowerCase()
    .split(/\s+/)
    .filter((term) => term !== "");
  if (terms.length === 0) return rows;
  const tests = terms.map(testOf);
  return rows.filter((row) => tests.every((test) => test(row)));
}

function testOf(term: string): (row: EventLine) => boolean {
  const [field, value = ""] = [term.slice(0, term.indexOf(":")), term.slice(term.indexOf(":") + 1)];
  if (field === "kind") return ({ event }) => isKind(event.kind, value);
  if (field === "subject") return ({ event: { subject = "" } }) => subject.toLowerCase() === value;
  if (field === "outcome") return ({ event: { outcome = "" } }) => outcome === value;
  return ({ event: { kind, subject = "", error }, text }) =>
    `${kind} ${subject} ${text} ${error?.message ?? ""}`.toLowerCase().includes(term);
}

/** Whether a pattern of a filter means a kind: `build.*`, `*.failed`. */
export function isKind(kind: string, pattern: string): boolean {
  const [noun = "", verb = ""] = kind.split(".");
  const [expectedNoun = "", expectedVerb = "*"] = pattern.split(".");
  return (expectedNoun === "*" || expectedNoun === noun) && (expectedVerb === "*" || expectedVerb === verb);
}
