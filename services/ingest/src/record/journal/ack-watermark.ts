/** Tracks up to which index all pushed items are in the log, while items finish in any order. */
export class AckWatermark {
  /**
   * Unfinished items, and finished ones with the number of messages that must be in the log. Items arrive in the order of
   * their indexes, which may have holes.
   */
  readonly #open = new Map<bigint, number | undefined>();
  #committed: bigint;

  /** `before`: everything up to this index is in the log or was never made. */
  constructor(before: bigint) {
    this.#committed = before;
  }

  /** An item has arrived. Called once for each piece of a frame. */
  began(index: bigint): void {
    if (!this.#open.has(index)) this.#open.set(index, undefined);
  }

  /** Everything that the item causes is in the log when this many messages are. */
  finished(index: bigint, messages: number): void {
    if (this.#open.has(index)) this.#open.set(index, messages);
  }

  /** The index up to which everything is in the log when `acknowledged` messages are. */
  upTo(acknowledged: number): bigint {
    for (const [index, messages] of this.#open) {
      if (messages === undefined || messages > acknowledged) break;
      this.#open.delete(index);
      this.#committed = index;
    }
    return this.#committed;
  }
}
