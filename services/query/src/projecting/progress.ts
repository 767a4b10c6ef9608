import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";

/** The position that the tables have reached, for callers that wait for one. */
export class ProjectedPosition {
  #position: Offset = logStart;
  readonly #waiting = new Set<{ readonly position: Offset; readonly resolve: (reached: boolean) => void }>();
  #wake = () => {};

  get isAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** Calls `wake`, and no other listener, whenever a caller begins to wait. */
  onAwaited(wake: () => void): void {
    this.#wake = wake;
  }

  get position(): Offset {
    return this.#position;
  }

  /** The position may also be a smaller one: tables may be restored from a backup. */
  advance(position: Offset): void {
    this.#position = position;
    for (const waiter of this.#waiting) {
      if (waiter.position > position) continue;
      this.#waiting.delete(waiter);
      waiter.resolve(true);
    }
  }

  /** Resolves with true when the tables reach the position within the time, else with false. */
  reached(position: Offset, timeoutMs: number): Promise<boolean> {
    if (position <= this.#position) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = startTimer(() => {
        this.#waiting.delete(waiter);
        resolve(false);
      }, timeoutMs);
      const waiter = {
        position,
        resolve: (reached: boolean) => {
          stopTimer(timer);
          resolve(reached);
        },
      };
      this.#waiting.add(waiter);
      this.#wake();
    });
  }
}
