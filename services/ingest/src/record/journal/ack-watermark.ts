import { Fifo } from "./fifo.ts";

/** Tracks up to which index all pushed items are in the log, while items finish in any order. */
export class AckWatermark {
  /**
   * Items that may not be in the log yet, in the order of their indexes, which may have holes. Unfinished ones have no
   * number of events; others have the number that must be in the log.
   */
  readonly #open = new Fifo<{ readonly index: bigint; events: number | undefined }>();
  #committed: bigint;

  /** `before`: everything up to this index is in the log or was never made. */
  constructor(before: bigint) {
    this.#committed = before;
  }

  /** An item has arrived. Called once for each piece of a frame. */
  began(index: bigint): void {
    if (this.#open.at(-1)?.index !== index) this.#open.push({ index, events: undefined });
  }

  /** Everything that the item causes is in the log when this many events are. */
  finished(index: bigint, events: number): void {
    const item = this.#find(index);
    if (item !== undefined) item.events = events;
  }

  /** The index up to which everything is in the log when `acknowledged` events are. */
  upTo(acknowledged: number): bigint {
    let done = 0;
    for (
      let item = this.#open.at(0);
      item?.events !== undefined && item.events <= acknowledged;
      item = this.#open.at(++done)
    ) {
      this.#committed = item.index;
    }
    this.#open.drop(done);
    return this.#committed;
  }

  /** Most items are finished before the next one begins. */
  #find(index: bigint): { events: number | undefined } | undefined {
    const last = this.#open.at(-1);
    if (last?.index === index) return last;
    let low = 0;
    let high = this.#open.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const one = this.#open.at(middle);
      if (one !== undefined && one.index < index) low = middle + 1;
      else high = middle;
    }
    const found = this.#open.at(low);
    return found?.index === index ? found : undefined;
  }
}
