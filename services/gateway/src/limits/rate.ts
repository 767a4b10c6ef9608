import { RateLimiterMemory } from "rate-limiter-flexible";

/** The count in the present window, and how much time of the window is left. */
export type Count = { readonly used: number; readonly leftMs: number };

/** Counts window by window, in this process. Unused counts are not carried over to the next window. */
export type Rate = {
  /** Counts one more for the key. */
  count(key: string): Promise<Count>;
};

export function rate(seconds: number): Rate {
  const limiter = new RateLimiterMemory({ points: 0, duration: seconds });
  return {
    async count(key) {
      // Only counts. Each limit decides for itself what is too much.
      const { consumedPoints, msBeforeNext } = await limiter.penalty(key);
      return { used: consumedPoints, leftMs: msBeforeNext };
    },
  };
}

/** For Retry-After. */
export function inSeconds({ leftMs }: Pick<Count, "leftMs">): number {
  return Math.max(1, Math.ceil(leftMs / 1_000));
}
