import { delay } from "@tapedeck/shared/sync/delay";

/** An answer that takes this many times as long as usual is late, but never within `leastMs`. */
const late = { times: 2, leastMs: 1_000 };

/** Notices that the next list of a poll does not come in its usual time. Uses no wall clock. */
export class LateNotice {
  readonly #onLate: () => void;
  #waiting = new AbortController();
  #isLate = false;

  /** `onLate` is called once for each list that is late. */
  constructor(onLate: () => void) {
    this.#onLate = onLate;
  }

  get isLate(): boolean {
    return this.#isLate;
  }

  /** A list was answered; the next one usually is `usualMs` later. */
  answered(usualMs: number): void {
    this.stop();
    this.#isLate = false;
    const waiting = new AbortController();
    this.#waiting = waiting;
    void delay(Math.max(late.leastMs, late.times * usualMs), waiting.signal).then(() => {
      if (waiting.signal.aborted) return;
      this.#isLate = true;
      this.#onLate();
    });
  }

  /** Nothing is expected any more. */
  stop(): void {
    this.#waiting.abort();
  }
}
