import { startTimer } from "@tapedeck/shared/sync/timers";

/** How long one turn comes after the other at least. */
const everyMs = 2;

/**
 * When writers publish: at the end of the event loop's turn, all at once, and 2 ms after the turn before at the earliest. So
 * what a source appends meanwhile is one message, which saves a sync of the disk, and the messages of all sources are one
 * write to the socket. An event that comes alone waits for nothing.
 */
export class PublishTurns {
  #next: Promise<void> | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  next(): Promise<void> {
    this.#next ??= new Promise((resolve) => {
      const begin = () => {
        this.#next = undefined;
        this.#lastAt = performance.now();
        resolve();
      };
      const leftMs = this.#lastAt + everyMs - performance.now();
      if (leftMs > 0) startTimer(begin, Math.ceil(leftMs));
      else setImmediate(begin);
    });
    return this.#next;
  }
}

/** Those of all writers of this process. */
export const publishTurns = new PublishTurns();
