import { setTimeout as delay } from "node:timers/promises";

export type Until = {
  /** What is waited for, for the error: "the second build to be recorded". */
  readonly message: string;
  readonly signal?: AbortSignal;
  /** Only says when a broken test gives up. Default: see `defaultDeadlineMs`. */
  readonly deadlineMs?: number;
};

/** A test has 120 s. In CI it has 600, because other programs may have the cores. */
export const defaultDeadlineMs = process.env.CI === undefined ? 90_000 : 300_000;

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;
const LONGEST_AFTER_COSTLY_MS = 1_000;

/**
 * Asks again and again until the condition gives something other than undefined, null or false, and resolves with that.
 * A condition that throws is asked again too, so it may hold assertions. This is the only place where tests wait.
 */
export const until = async <T>(
  condition: () => T | Promise<T>,
  { message, signal, deadlineMs = defaultDeadlineMs }: Until,
): Promise<Exclude<T, undefined | null | false>> => {
  const end = performance.now() + deadlineMs;
  let cause: unknown;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    signal?.throwIfAborted();
    const since = performance.now();
    try {
      const found = await condition();
      if (found !== undefined && found !== null && found !== false) {
        return found as Exclude<T, undefined | null | false>;
      }
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    const now = performance.now();
    if (now > end) throw new Error(`waited ${deadlineMs} ms in vain for ${message}`, { cause });
    // A condition may read a whole log: asked at once again, it would take the processor from what it waits for.
    const rest = Math.min(2 * (now - since), LONGEST_AFTER_COSTLY_MS);
    await delay(Math.max(pause, rest), undefined, signal && { signal });
  }
};
