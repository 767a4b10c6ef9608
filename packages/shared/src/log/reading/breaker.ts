/** How long the other way is taken until the usual one is tried again. */
const pauseMs = 2_000;

/**
 * Remembers that the usual way has failed, so that not everybody waits for it. After a pause one caller tries it again, while
 * the others still go the other way. There is an end to that: then the usual way is the only one, until it succeeds.
 */
export class Breaker {
  readonly #longestMs: number;
  readonly #now: () => number;
  #failingSince: number | undefined;
  #triedAt = 0;

  constructor(longestMs: number, now: () => number = () => performance.now()) {
    this.#longestMs = longestMs;
    this.#now = now;
  }

  /** Which way this caller takes. */
  next(): "primary" | "other" {
    const now = this.#now();
    if (!this.mayAvoid() || this.#failingSince === undefined || now - this.#triedAt >= pauseMs) {
      this.#triedAt = now;
      return "primary";
    }
    return "other";
  }

  /** Whether the other way may be taken where the usual one fails. */
  mayAvoid(): boolean {
    return this.#failingSince === undefined || this.#now() - this.#failingSince < this.#longestMs;
  }

  get isFailing(): boolean {
    return this.#failingSince !== undefined;
  }

  failed(): void {
    this.#triedAt = this.#now();
    this.#failingSince ??= this.#now();
  }

  succeeded(): void {
    this.#failingSince = undefined;
  }
}
