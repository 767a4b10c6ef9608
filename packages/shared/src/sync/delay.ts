import { startTimer, stopTimer } from "./timers.ts";
/** Resolves after a time, or at once when the signal aborts. Never rejects. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      stopTimer(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = startTimer(done, ms);
    signal?.addEventListener("abort", done);
  });
}

/** Times between attempts: doubling from `first` to `max`, and a fifth at random so that many don't come at once. */
export function backoff(first: number, max: number): { next(): number; reset(): void } {
  let ms = first;
  return {
    next() {
      const wait = ms * (0.8 + Math.random() * 0.4);
      ms = Math.min(max, ms * 2);
      return wait;
    },
    reset() {
      ms = first;
    },
  };
}
