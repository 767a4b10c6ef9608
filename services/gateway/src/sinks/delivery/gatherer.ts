import type { HeldBatches, HeldEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { maxBytesPerRequest, maxEventsPerRequest } from "./times.ts";

export type GathererOptions = {
  readonly matches: (held: HeldEvent) => boolean;
  /**
   * Called with an offset up to which every match is delivered: what was given counts as delivered with the next call.
   * `isEnd`: nothing more is available now.
   */
  readonly passed: (offset: Offset, isEnd: boolean) => void;
  /** How long more events are waited for, once, where fewer are available than a request may have. */
  readonly gatherMs: number;
};

type Read = { readonly batch: readonly HeldEvent[] } | { readonly error: unknown } | "end";

/** With one more batch of the live log these would be more than a request may have, and so two requests. */
const fullEvents = maxEventsPerRequest - 31;

/**
 * Reads events that match, and gathers those of a moment: a request costs as much as many events, and so does a reader that is
 * woken for each message.
 */
export class Gatherer {
  readonly #batches: HeldBatches;
  readonly #options: GathererOptions;
  readonly #changed = new Notifier();
  #isReading = false;
  #read: Read | undefined;
  /** The reader waits: it has given all that there is. */
  #isAtEnd = false;
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
    this.#isAtEnd = true;
    if (this.#isInHand) this.#reached = offset;
    else this.#options.passed(offset, true);
    this.#changed.ring();
  }

  /** The next events, one at least; undefined at the end. Rejects as the reader does. */
  async next(): Promise<readonly HeldEvent[] | undefined> {
    this.#isInHand = false;
    if (this.#reached !== undefined) this.#options.passed(this.#reached, true);
    this.#reached = undefined;
    const events: HeldEvent[] = [];
    let bytes = 0;
    for (let hasWaited = false; ; ) {
      const read = await this.#nextRead(events.length > 0);
      if (read === undefined) {
        if (hasWaited || this.#options.gatherMs === 0) return events;
        hasWaited = true;
        await delay(this.#options.gatherMs);
        continue;
      }
      if (read === "end" || "error" in read) {
        if (events.length > 0) return events;
        if (read === "end") return undefined;
        throw read.error;
      }
      this.#read = undefined;
      for (const held of read.batch) {
        if (!this.#options.matches(held)) continue;
        this.#isInHand = true;
        events.push(held);
        bytes += held.bytes?.byteLength ?? 0;
      }
      if (events.length >= fullEvents || bytes >= maxBytesPerRequest) return events;
      const last = read.batch.at(-1);
      if (events.length === 0 && last !== undefined) this.#options.passed(last.offset, false);
    }
  }

  /** What the reader gives next; undefined where it has nothing now and `mayBeNone`. */
  async #nextRead(mayBeNone: boolean): Promise<Read | undefined> {
    for (;;) {
      const changed = this.#changed.next();
      if (this.#read !== undefined) return this.#read;
      if (!this.#isReading) this.#readNext();
      else if (this.#isAtEnd && mayBeNone) return undefined;
      await changed;
    }
  }

  #readNext(): void {
    this.#isReading = true;
    this.#isAtEnd = false;
    const done = (read: Read) => {
      this.#isReading = false;
      this.#isAtEnd = false;
      this.#read = read;
      this.#changed.ring();
    };
    this.#batches.next().then(
      ({ done: isDone, value }) => done(isDone === true ? "end" : { batch: value }),
      (error: unknown) => done({ error }),
    );
  }
}
