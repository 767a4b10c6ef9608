import type { Moment } from "@tapedeck/shared/time/moment";
import { msBetween } from "@tapedeck/shared/time/moment";

/** What one process says at once may stand in another order; and its clock may be set by a little. */
const disorderMs = 1_000;

/**
 * True where a file that several processes write at their ends goes back to what happened before: the one that has written
 * first began inside of the next one, or beside it.
 */
export function goesBack(before: Moment | undefined, next: Moment): boolean {
  return before !== undefined && msBetween(next, before) > disorderMs;
}
