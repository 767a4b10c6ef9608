const longestMs = 15_000;

/**
 * How long a dial may take. One of several servers may have vanished, and the next one answers, so they are given up
 * soon. But where the machine is so busy that each dial takes longer, none would ever succeed: the time is doubled then.
 */
export class DialTimeout {
  readonly #firstMs: number;
  #ms: number;

  constructor(servers: number) {
    this.#firstMs = servers > 1 ? 2_000 : 5_000;
    this.#ms = this.#firstMs;
  }

  get ms(): number {
    return this.#ms;
  }

  /** A dial failed after this time. One that was refused says nothing about the time that others need. */
  failedAfter(ms: number): void {
    if (ms >= this.#ms) this.#ms = Math.min(this.#ms * 2, longestMs);
  }

  succeeded(): void {
    this.#ms = this.#firstMs;
  }
}
