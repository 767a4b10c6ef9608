import type { TapedeckEvent } from "@tapedeck/client";
import { foldLoops } from "@tapedeck/client/lanes/now";
import type { Loop } from "@tapedeck/client/lanes/step";
import { timeOf } from "@tapedeck/client/lanes/step";

/** A session's events in order, and the loops among them. */
export type SessionRecord = { readonly events: readonly TapedeckEvent[]; readonly loops: readonly Loop[] };

export const emptySession: SessionRecord = { events: [], loops: [] };

/** The last loops are kept whole; `most` is past what a day of saving files makes. */
export function foldSession(record: SessionRecord, events: readonly TapedeckEvent[], most = 5_000): SessionRecord {
  // Channels answer to the same fact with mirrors, which say nothing more.
  const shown = events.filter(({ kind }) => kind !== "mirror.received");
  let loops = record.loops;
  for (const event of shown) loops = foldLoops(loops, event, most);
  return { events: record.events.concat(shown), loops };
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

/** Longer waits are cut when a session is played: nobody watches a pause. */
const longestPauseMs = 2_000;

/** How long the event after `index` waits when the session is played at a speed. */
export function pauseAfter(events: readonly TapedeckEvent[], index: number, speed: number): number {
  const [event, next] = [events[index], events[index + 1]];
  if (event === undefined || next === undefined) return 0;
  return Math.min(longestPauseMs, Math.max(0, timeOf(next) - timeOf(event))) / speed;
}

/** Words, and `kind:`, `subject:` and `outcome:` with a value as in the API's filter: `kind:build.* api`. */
export function matching(events: readonly TapedeckEvent[], asked: string): readonly TapedeckEvent[] {
  const terms = asked
    .toLowerCase()
    .split(/\s+/)
    .filter((term) => term !== "");
  if (terms.length === 0) return events;
  const tests = terms.map(testOf);
  return events.filter((event) => tests.every((test) => test(event)));
}

function testOf(term: string): (event: TapedeckEvent) => boolean {
  const [field, value = ""] = [term.slice(0, term.indexOf(":")), term.slice(term.indexOf(":") + 1)];
  if (field === "kind") return ({ kind }) => isKind(kind, value);
  if (field === "subject") return ({ subject = "" }) => subject.toLowerCase() === value;
  if (field === "outcome") return ({ outcome = "" }) => outcome === value;
  return ({ kind, subject = "", summary, error }) =>
    `${kind} ${subject} ${summary} ${error?.message ?? ""}`.toLowerCase().includes(term);
}

function isKind(kind: string, pattern: string): boolean {
  const [noun = "", verb = ""] = kind.split(".");
  const [wantedNoun = "", wantedVerb = "*"] = pattern.split(".");
  return (wantedNoun === "*" || wantedNoun === noun) && (wantedVerb === "*" || wantedVerb === verb);
}
