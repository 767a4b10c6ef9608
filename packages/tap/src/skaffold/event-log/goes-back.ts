import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msBetween } from "@tapedeck/shared/time/timestamp";

/** Messages of one moment may be in any order, and a process' clock may be adjusted a little. */
const disorderMs = 1_000;

/**
 * True where a file that several processes write at their ends goes back in time: the process that wrote first ran inside
 * the next one, or beside it.
 */
export function goesBack(before: Timestamp | undefined, next: Timestamp): boolean {
  return before !== undefined && msBetween(next, before) > disorderMs;
}
