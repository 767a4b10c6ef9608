import { backoff, delay } from "./delay.ts";

/** Tries until it succeeds or the signal aborts. Never rejects. */
export async function retried(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const retry = backoff(50, 2_000);
  while (!signal.aborted) {
    try {
      return await work();
    } catch {
      await delay(retry.next(), signal);
    }
  }
}
