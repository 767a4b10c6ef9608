/** Lets a bounded number of tasks run at once; the rest wait in line. */
export type Semaphore = {
  /** Resolves with the function that releases the permit; with undefined when the signal aborts first. */
  acquire(signal: AbortSignal): Promise<(() => void) | undefined>;
  readonly waiting: number;
  readonly running: number;
};

/** A semaphore that lets `atOnce` callers proceed at a time. */
export function semaphore(atOnce: number): Semaphore {
  const line = new Set<() => void>();
  let running = 0;

  const end = () => {
    running--;
    const [next] = line;
    if (next === undefined) return;
    line.delete(next);
    next();
  };

  const start = () => {
    running++;
    let ended = false;
    return () => {
      if (!ended) end();
      ended = true;
    };
  };

  return {
    get waiting() {
      return line.size;
    },
    get running() {
      return running;
    },
    acquire(signal) {
      if (signal.aborted) return Promise.resolve(undefined);
      if (running < atOnce) return Promise.resolve(start());
      return new Promise((resolve) => {
        const called = () => {
          signal.removeEventListener("abort", leave);
          resolve(start());
        };
        const leave = () => {
          line.delete(called);
          resolve(undefined);
        };
        line.add(called);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
