import type { HeldBatches, HeldEvent } from "@tapedeck/shared/log/log";
import { justBefore, messagesBetween, type Offset } from "@tapedeck/shared/log/offset";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { SubscriptionMessage } from "./messages.ts";

/** When a subscriber without matching events gets a bookmark: after this time, or after this many messages of the log. */
export type Bookmarks = { readonly ms: number; readonly messages: number };

/** Wanted events, the switch to the live tail, or a position up to which nothing was wanted. */
export type SubscriptionItem = {
  /** The offset of the last message. */
  readonly offset: Offset;
  readonly type: "events" | "caught_up" | "bookmark";
  readonly messages: readonly SubscriptionMessage[];
};

type ReaderCallbacks = { readonly caughtUp: (offset: Offset) => void; readonly reached: (offset: Offset) => void };

/** Opens the events of a subscription. */
export type OpenEvents = (over: AbortSignal, callbacks: ReaderCallbacks) => HeldBatches;

export type SubscriptionReaderOptions = {
  readonly open: OpenEvents;
  /** Undefined for an event that is not wanted. */
  readonly messageOf: (held: HeldEvent) => SubscriptionMessage | undefined;
  readonly markOf: (type: "caught_up" | "bookmark", offset: Offset) => SubscriptionMessage;
  readonly afterOffset: Offset;
  readonly bookmarks: Bookmarks;
};

/**
 * Selects the wanted events and adds bookmarks. Reads one batch ahead at most. A bookmark never passes an event that was
 * not yielded: it covers what was passed while the next batch was being read, and later events come after it.
 */
export class SubscriptionReader {
  readonly #options: SubscriptionReaderOptions;
  readonly #queue: (SubscriptionItem | { readonly type: "end" })[] = [];
  readonly #queued = new Notifier();
  #yielded: { readonly offset: Offset; readonly at: number; readonly isBookmark?: boolean };
  /** Offset up to which nothing was wanted. */
  #passedOffset: Offset;
  #bookmarkTimer: Timer | undefined;
  #failure: unknown;

  constructor(options: SubscriptionReaderOptions) {
    this.#options = options;
    this.#yielded = { offset: options.afterOffset, at: performance.now() };
    this.#passedOffset = options.afterOffset;
  }

  async *items(signal: AbortSignal): AsyncGenerator<SubscriptionItem, void> {
    const left = new AbortController();
    // A signal that depends on others takes three times the memory of a listener, for each subscriber.
    const leave = () => left.abort(signal.reason);
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    const events = this.#options.open(left.signal, {
      caughtUp: (offset) => this.#mark("caught_up", offset),
      reached: (offset) => this.#pass(offset),
    });
    try {
      void this.#readNext(events);
      for (;;) {
        this.#bookmarkIfDue();
        const item = this.#queue.shift();
        if (item === undefined) {
          await this.#queued.next();
        } else if (item.type === "end") {
          if (this.#failure !== undefined) throw this.#failure;
          return;
        } else {
          this.#yielded = { offset: item.offset, at: performance.now(), isBookmark: item.type === "bookmark" };
          yield item;
          if (item.type === "events") void this.#readNext(events);
        }
      }
    } finally {
      stopTimer(this.#bookmarkTimer);
      signal.removeEventListener("abort", leave);
      left.abort();
      events.return().catch(() => {});
    }
  }

  /** Reads up to the next batch with wanted events, and queues these. */
  async #readNext(batches: HeldBatches): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await batches.next();
        if (done === true) return this.#add({ type: "end" });
        if (this.#addMatching(value)) return;
        this.#pass((value.at(-1) as HeldEvent).offset);
      }
    } catch (error) {
      this.#failure = error;
      this.#add({ type: "end" });
    }
  }

  /** False when nothing of the batch is wanted. */
  #addMatching(batch: readonly HeldEvent[]): boolean {
    const messages: SubscriptionMessage[] = [];
    let first: Offset | undefined;
    let last: Offset | undefined;
    for (const held of batch) {
      const message = this.#options.messageOf(held);
      if (message === undefined) continue;
      messages.push(message);
      first ??= held.offset;
      last = held.offset;
    }
    if (first === undefined || last === undefined) return false;
    this.#passedOffset = justBefore(first);
    if (this.#isFar && this.#queue.length === 0) this.#mark("bookmark", this.#passedOffset);
    this.#passedOffset = last;
    this.#add({ type: "events", offset: last, messages });
    return true;
  }

  #mark(type: "caught_up" | "bookmark", offset: Offset): void {
    this.#add({ type, offset, messages: [this.#options.markOf(type, offset)] });
  }

  #add(item: SubscriptionItem | { readonly type: "end" }): void {
    this.#queue.push(item);
    this.#queued.ring();
  }

  #pass(offset: Offset): void {
    this.#passedOffset = offset;
    this.#bookmarkIfDue();
  }

  get #isFar(): boolean {
    return messagesBetween(this.#yielded.offset, this.#passedOffset) >= this.#options.bookmarks.messages;
  }

  /**
   * Queues a bookmark now or when it is due, unless another item with the position is queued before. The rest of the
   * message that contains the last event is not worth one.
   */
  #bookmarkIfDue(): void {
    const { offset, isBookmark = false } = this.#yielded;
    const isFurther = isBookmark ? this.#passedOffset > offset : messagesBetween(offset, this.#passedOffset) > 0;
    if (this.#queue.length > 0 || !isFurther) return;
    const wait = this.#yielded.at + this.#options.bookmarks.ms - performance.now();
    if (wait <= 0 || this.#isFar) this.#mark("bookmark", this.#passedOffset);
    else {
      this.#bookmarkTimer ??= startTimer(() => {
        this.#bookmarkTimer = undefined;
        this.#bookmarkIfDue();
      }, wait);
    }
  }
}
