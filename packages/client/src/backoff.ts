/** Resolves after a time, or at once when the signal aborts. Never rejects. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

export type Backoff = { readonly first: number; readonly max: number };

/** Times between attempts in ms: doubling, and each at random by half, so that many who lost the same gateway spread. */
export function backoff({ first, max }: Backoff): { next(): number; reset(): void } {
  let ms = first;
  return {
    next() {
      const wait = ms * (0.5 + Math.random());
      ms = Math.min(max, ms * 2);
      return wait;
    },
    reset() {
      ms = first;
    },
  };
}
