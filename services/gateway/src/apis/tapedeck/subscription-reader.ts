import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { justBefore, mayHoldEvents, messagesBetween, type Offset } from "@tapedeck/shared/log/offset";
import { Notifier } from "@tapedeck/shared/sync/notifier";

/** When a subscriber without matching events gets a bookmark: after this time, or after this many events. */
export type Bookmarks = { readonly ms: number; readonly events: number };

/** A wanted event, the switch to the live tail, or a position up to which nothing was wanted. */
export type SubscriptionItem =
  | { readonly type: "event"; readonly offset: Offset; readonly recorded: RecordedEvent }
  | { readonly type: "caught_up" | "bookmark"; readonly offset: Offset };

type ReaderCallbacks = { readonly caughtUp: (offset: Offset) => void; readonly reached: (offset: Offset) => void };

/** Opens the events of a subscription. */
export type OpenEvents = (over: AbortSignal, callbacks: ReaderCallbacks) => AsyncGenerator<RecordedEvent, void>;

export type SubscriptionReaderOptions = {
  readonly open: OpenEvents;
  readonly isWanted: (recorded: RecordedEvent) => boolean;
  readonly afterOffset: Offset;
  readonly bookmarks: Bookmarks;
};

/**
 * Selects the wanted events and adds bookmarks. Reads one event ahead at most. A bookmark never passes an event that was
 * not yielded: it covers what was passed while the next event was being read, and later events come after it.
 */
export class SubscriptionReader {
  readonly #options: SubscriptionReaderOptions;
  readonly #queue: (SubscriptionItem | { readonly type: "end" })[] = [];
  readonly #queued = new Notifier();
  #yielded: { readonly offset: Offset; readonly at: number };
  /** Sequence up to which nothing was wanted. */
  #passedOffset: Offset;
  #bookmarkTimer: NodeJS.Timeout | undefined;
  #failure: unknown;

  constructor(options: SubscriptionReaderOptions) {
    this.#options = options;
    this.#yielded = { offset: options.afterOffset, at: performance.now() };
    this.#passedOffset = options.afterOffset;
  }

  async *items(signal: AbortSignal): AsyncGenerator<SubscriptionItem, void> {
    const left = new AbortController();
    const events = this.#options.open(AbortSignal.any([signal, left.signal]), {
      caughtUp: (offset) => this.#add({ type: "caught_up", offset }),
      reached: (offset) => this.#pass(offset),
    });
    try {
      void this.#readNext(events);
      for (;;) {
        this.#bookmarkIfDue();
        const queued = this.#queued.next();
        const item = this.#queue.shift();
        if (item === undefined) {
          await queued;
        } else if (item.type === "end") {
          if (this.#failure !== undefined) throw this.#failure;
          return;
        } else {
          this.#yielded = { offset: item.offset, at: performance.now() };
          yield item;
          if (item.type === "event") void this.#readNext(events);
        }
      }
    } finally {
      clearTimeout(this.#bookmarkTimer);
      left.abort();
      events.return().catch(() => {});
    }
  }

  /** Reads up to the next wanted event, and queues it. */
  async #readNext(events: AsyncGenerator<RecordedEvent, void>): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await events.next();
        if (done === true) return this.#add({ type: "end" });
        const { offset } = value;
        if (this.#options.isWanted(value)) {
          this.#passedOffset = justBefore(offset);
          if (this.#isFar && this.#queue.length === 0) this.#add({ type: "bookmark", offset: this.#passedOffset });
          return this.#add({ type: "event", offset, recorded: value });
        }
        this.#pass(offset);
      }
    } catch (error) {
      this.#failure = error;
      this.#add({ type: "end" });
    }
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
    return messagesBetween(this.#yielded.offset, this.#passedOffset) >= this.#options.bookmarks.events;
  }

  /** Queues a bookmark now or when it is due, unless another item that says the position is queued before. */
  #bookmarkIfDue(): void {
    if (this.#queue.length > 0 || !mayHoldEvents(this.#yielded.offset, this.#passedOffset)) return;
    const wait = this.#yielded.at + this.#options.bookmarks.ms - performance.now();
    if (wait <= 0 || this.#isFar) this.#add({ type: "bookmark", offset: this.#passedOffset });
    else {
      this.#bookmarkTimer ??= setTimeout(() => {
        this.#bookmarkTimer = undefined;
        this.#bookmarkIfDue();
      }, wait);
    }
  }
}
