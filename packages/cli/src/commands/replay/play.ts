import { delay } from "@tapedeck/shared/sync/delay";
import type { Tape } from "./tape.ts";

export type ReplayPace = {
  /** How many times as fast as it was; Infinity: without a pause. */
  readonly speed: number;
  /** No pause is longer, at this speed. */
  readonly longestMs: number;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
};

/** Plays a tape to its end, with the pauses that were between its events, or until the signal. */
export async function play(
  tape: Tape,
  { speed, longestMs, sleep = delay }: ReplayPace,
  signal: AbortSignal,
): Promise<void> {
  let last: number | undefined;
  while (!signal.aborted) {
    const coming = tape.events[tape.played];
    if (coming === undefined) return;
    const time = coming.recordedAt.getTime();
    const ms = last === undefined ? 0 : Math.min((time - last) / speed, longestMs);
    if (ms > 0) await sleep(ms, signal);
    if (signal.aborted) return;
    last = time;
    tape.next();
  }
}
