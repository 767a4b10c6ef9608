import { delay } from "@tapedeck/shared/sync/delay";
import type { SubscriptionMessage } from "./messages.ts";

/** How many times as fast as it was recorded; `max`: as fast as it can be read. */
export type ReplaySpeed = number | "max";

export type Clock = {
  /** Milliseconds; never goes back. */
  now(): number;
  /** Resolves after a time, or at once when the signal aborts. */
  delay(ms: number, signal: AbortSignal): Promise<void>;
};

const ownClock: Clock = { now: () => performance.now(), delay };

/** Timers accept no more than 24 days, so long gaps are waited for in pieces. */
const longestDelayMs = 3_600_000;

/**
 * Plays history at the speed at which it was recorded, multiplied: the first event at once, each later one when the time
 * between their recordings, divided by the speed, has passed. A reader that is late gets at once what is due. Messages
 * after `caught_up` are not delayed. Ends with the signal.
 */
export async function* pace(
  messages: AsyncIterable<SubscriptionMessage>,
  speed: ReplaySpeed,
  signal: AbortSignal,
  clock: Clock = ownClock,
): AsyncGenerator<SubscriptionMessage, void> {
  let isHistory = speed !== "max";
  let start: { readonly recorded: number; readonly at: number } | undefined;
  for await (const message of messages) {
    if (message.type === "caught_up") isHistory = false;
    if (isHistory && speed !== "max" && message.recordedAt !== undefined) {
      const recorded = message.recordedAt.getTime();
      start ??= { recorded, at: clock.now() };
      const due = start.at + (recorded - start.recorded) / speed;
      for (let wait = due - clock.now(); wait > 0 && !signal.aborted; wait = due - clock.now()) {
        await clock.delay(Math.min(wait, longestDelayMs), signal);
      }
    }
    if (signal.aborted) return;
    yield message;
  }
}
