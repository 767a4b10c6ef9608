/** Lets callers wait for a successful poll that begins after their call. */
export class PollRounds {
  #waiting: (() => void)[] = [];
  #started: (() => void)[] = [];

  /** Resolves when a poll that has not started yet has succeeded. Never resolves after the last poll. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A poll begins. The one before it may have failed: its callers wait for this one. */
  begin(): void {
    this.#started.push(...this.#waiting);
    this.#waiting = [];
  }

  /** The poll has succeeded, and everything that it showed was emitted. */
  succeeded(): void {
    const started = this.#started;
    this.#started = [];
    for (const resolve of started) resolve();
  }
}
