import { Notifier } from "@tapedeck/shared/sync/notifier";

/** Passes values from several writers to one reader. */
export class Mailbox<T> implements AsyncIterable<T> {
  readonly #waiting: { readonly value: T; readonly taken: () => void }[] = [];
  readonly #changed = new Notifier();
  #isClosed = false;

  /** Resolves when the value is taken, so that nothing piles up, or after `close`. */
  put(value: T): Promise<void> {
    return new Promise((taken) => {
      if (this.#isClosed) return taken();
      this.#waiting.push({ value, taken });
      this.#changed.ring();
    });
  }

  /** Ends the reader's loop and resolves every waiting `put`, because a waiting writer would keep its file open. */
  close(): void {
    this.#isClosed = true;
    for (const { taken } of this.#waiting.splice(0)) taken();
    this.#changed.ring();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    while (!this.#isClosed) {
      const entry = this.#waiting.shift();
      if (entry === undefined) {
        await this.#changed.next();
      } else {
        entry.taken();
        yield entry.value;
      }
    }
  }
}
