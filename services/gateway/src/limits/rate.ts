import { RateLimiterMemory } from "rate-limiter-flexible";

/** How somebody stands: `used` in the present window, of which so much is left. */
export type Count = { readonly used: number; readonly leftMs: number };

/** Counts window by window, in this process. What one window leaves over is not saved for the next. */
export type Rate = {
  /** One more of whom the key names. */
  count(key: string): Promise<Count>;
};

export function rate(seconds: number): Rate {
  const limiter = new RateLimiterMemory({ points: 0, duration: seconds });
  return {
    async count(key) {
      // Counts without a judgement, which is each limit's own.
      const { consumedPoints, msBeforeNext } = await limiter.penalty(key);
      return { used: consumedPoints, leftMs: msBeforeNext };
    },
  };
}

/** For Retry-After. */
export function inSeconds({ leftMs }: Pick<Count, "leftMs">): number {
  return Math.max(1, Math.ceil(leftMs / 1_000));
}
