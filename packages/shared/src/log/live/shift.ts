import { Turns } from "./turns.ts";

/** Work that lasts longer than this yields to the event loop. */
const longestMs = 5;

/** Those who work piece by piece on what is at hand, and share the event loop with each other and with all the rest. */
export class Shift {
  readonly #turns = new Turns(1);
  #since: number | undefined;

  /** To be asked after each piece: whether they have worked for long in this turn of the event loop, all together. */
  get isOver(): boolean {
    const now = performance.now();
    if (this.#since !== undefined) return now - this.#since > longestMs;
    this.#since = now;
    setImmediate(() => {
      this.#since = undefined;
    });
    return false;
  }

  /** Resolves in a later turn, for one of those who wait at a time. */
  next(): Promise<void> {
    return this.#turns.next();
  }
}
