/** How far the tables have come, for those who wait for a position. */
export type Progress = {
  readonly position: number;
  /** A smaller one too: tables may have been put back. */
  advance(position: number): void;
  /** True when the tables reach the position within the time. */
  reached(position: number, timeoutMs: number): Promise<boolean>;
};

export function progress(): Progress {
  let current = 0;
  const waiting = new Set<{ readonly position: number; readonly resolve: (reached: boolean) => void }>();
  return {
    get position() {
      return current;
    },
    advance(position) {
      current = position;
      for (const waiter of waiting) {
        if (waiter.position > position) continue;
        waiting.delete(waiter);
        waiter.resolve(true);
      }
    },
    reached(position, timeoutMs) {
      if (position <= current) return Promise.resolve(true);
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          waiting.delete(waiter);
          resolve(false);
        }, timeoutMs);
        const waiter = {
          position,
          resolve: (reached: boolean) => {
            clearTimeout(timer);
            resolve(reached);
          },
        };
        waiting.add(waiter);
      });
    },
  };
}
