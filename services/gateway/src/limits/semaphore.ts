import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";

/** A semaphore whose callers wait only for a limited time. */
export type TimedSemaphore = {
  /**
   * Resolves with the function that releases the permit. The signal releases it, too.
   * @throws TapedeckError limit_exceeded when no permit was free in time, or when the signal aborts first
   */
  acquire(signal: AbortSignal): Promise<() => void>;
};

export type TimedSemaphoreOptions = {
  readonly atOnce: number;
  readonly timeoutMs: number;
  /** Names the work, for people. */
  readonly what: string;
};

export function timedSemaphore({ atOnce, timeoutMs, what }: TimedSemaphoreOptions): TimedSemaphore {
  const permits = new Semaphore(atOnce);
  return {
    async acquire(signal) {
      const release = await permits.acquire(AbortSignal.any([signal, timeoutSignal(timeoutMs)]));
      if (release === undefined) {
        const message = `too many ${what} in progress (limit ${atOnce}): try again`;
        throw new TapedeckError("limit_exceeded", message, {}, { retryAfter: 1 });
      }
      signal.addEventListener("abort", release, { once: true });
      return () => {
        signal.removeEventListener("abort", release);
        release();
      };
    },
  };
}
