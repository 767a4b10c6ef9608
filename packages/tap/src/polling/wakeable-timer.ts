import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
/** A delay that can be ended early. */
export class WakeableTimer {
  #isWoken = false;
  #endDelay = () => {};

  /** Ends the current delay, or the next one before it begins. */
  readonly wake = (): void => {
    this.#isWoken = true;
    this.#endDelay();
  };

  /** Resolves after `ms`, or when the timer is woken. */
  async delay(ms: number): Promise<void> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        const timer = startTimer(resolve, ms);
        this.#endDelay = () => {
          stopTimer(timer);
          resolve();
        };
      });
    }
    this.#isWoken = false;
  }
}
