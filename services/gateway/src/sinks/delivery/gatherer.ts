import type { HeldBatches, HeldEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { maxBytesPerRequest, maxEventsPerRequest } from "./times.ts";

export type GathererOptions = {
  readonly isWanted: (held: HeldEvent) => boolean;
  /**
   * Called with an offset up to which nothing is wanted that is not delivered: what was given counts as delivered when more is asked for.
   * `isEnd`: nothing more is available now.
   */
  readonly passed: (offset: Offset, isEnd: boolean) => void;
  /** How long more events are waited for after the first one. */
  readonly gatherMs: number;
};

/** Reads events that are wanted, and gathers those of a moment: a request costs as much as many events. */
export class Gatherer {
  readonly #batches: HeldBatches;
  readonly #options: GathererOptions;
  /** The batch that was asked for. */
  #next: Promise<IteratorResult<readonly HeldEvent[], void>> | undefined;
  /** Events are gathered, or were given and may not be delivered yet. */
  #isInHand = false;
  /** What the reader has reached meanwhile. */
  #reached: Offset | undefined;

  constructor(batches: HeldBatches, options: GathererOptions) {
    this.#batches = batches;
    this.#options = options;
  }

  /** To be called when the reader has nothing more now, with the offset that it has reached. */
  reached(offset: Offset): void {
    if (this.#isInHand) this.#reached = offset;
    else this.#options.passed(offset, true);
  }

  /** The next events, one at least; undefined at the end. Rejects as the reader does. */
  async next(): Promise<readonly HeldEvent[] | undefined> {
    const events: HeldEvent[] = [];
    let bytes = 0;
    const over = new AbortController();
    let passed: Promise<undefined> | undefined;
    this.#isInHand = false;
    if (this.#reached !== undefined) this.#options.passed(this.#reached, true);
    this.#reached = undefined;
    try {
      for (;;) {
        this.#next ??= this.#batches.next();
        const result = await (passed === undefined ? this.#next : Promise.race([this.#next, passed]));
        if (result === undefined) return events;
        this.#next = undefined;
        if (result.done === true) return events.length === 0 ? undefined : events;
        for (const held of result.value) {
          if (!this.#options.isWanted(held)) continue;
          events.push(held);
          bytes += held.bytes?.byteLength ?? 0;
        }
        if (events.length > 0) this.#isInHand = true;
        if (events.length >= maxEventsPerRequest || bytes >= maxBytesPerRequest) return events;
        const last = result.value.at(-1);
        if (events.length > 0) {
          passed ??= delay(this.#options.gatherMs, over.signal).then(() => undefined);
        } else if (last !== undefined) this.#options.passed(last.offset, false);
      }
    } finally {
      over.abort();
    }
  }
}
