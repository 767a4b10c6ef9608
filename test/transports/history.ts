import { seqIn } from "@tapedeck/shared/testing/positions";
import type { Message } from "./transport.ts";

/** An event that a reader must get. */
export type Due = { readonly seq: number; readonly id: string };

/**
 * Returns the errors in the messages of one reader over all its connections, in order of arrival: none if it got all
 * due events, in order, once each, and nothing else, and no mark (bookmark, caught_up …) promised an event that came
 * only later.
 */
export function wrongWith(received: readonly Message[], due: readonly Due[]): string[] {
  const wrong: string[] = [];
  const seen = new Set<string>();
  const expected = new Map(due.map(({ id, seq }) => [id, seq]));
  let lastSeq = 0;
  let by = "the start";
  for (const { type, position, event } of received) {
    const seq = seqIn(position);
    const what = event === undefined ? `${type} at ${position}` : `${event.id} at ${position}`;
    if (event === undefined) {
      if (!(seq >= lastSeq)) wrong.push(`${what} is behind ${by}`);
    } else {
      if (seen.has(event.id)) wrong.push(`${what} came twice`);
      else if (!(seq > lastSeq)) wrong.push(`${what} came after ${by}`);
      if (!expected.has(event.id)) wrong.push(`${what} is not for this reader`);
      else if (expected.get(event.id) !== seq) wrong.push(`${what} stands at ${expected.get(event.id)}`);
      seen.add(event.id);
    }
    lastSeq = Math.max(lastSeq, seq || 0);
    by = what;
  }
  for (const { id, seq } of due) if (!seen.has(id)) wrong.push(`${id} at ${seq} is missing`);
  return wrong;
}
