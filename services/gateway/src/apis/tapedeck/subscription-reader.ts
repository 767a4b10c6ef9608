import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { Notifier } from "@tapedeck/shared/sync/notifier";

/** When a subscriber without matching events gets a bookmark: after this time, or after this many events. */
export type Bookmarks = { readonly ms: number; readonly events: number };

/** A wanted event, the switch to the live tail, or a position up to which nothing was wanted. */
export type SubscriptionItem =
  | { readonly type: "event"; readonly seq: number; readonly recorded: RecordedEvent }
  | { readonly type: "caught_up" | "bookmark"; readonly seq: number };

type ReaderCallbacks = { readonly caughtUp: (seq: number) => void; readonly reached: (seq: number) => void };

/** Opens the events of a subscription. */
export type OpenEvents = (over: AbortSignal, callbacks: ReaderCallbacks) => AsyncGenerator<RecordedEvent, void>;

export type SubscriptionReaderOptions = {
  readonly open: OpenEvents;
  readonly isWanted: (recorded: RecordedEvent) => boolean;
  readonly afterSeq: number;
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
  #yielded: { readonly seq: number; readonly at: number };
  /** Sequence up to which nothing was wanted. */
  #passedSeq: number;
  #bookmarkTimer: NodeJS.Timeout | undefined;
  #failure: unknown;

  constructor(options: SubscriptionReaderOptions) {
    this.#options = options;
    this.#yielded = { seq: options.afterSeq, at: performance.now() };
    this.#passedSeq = options.afterSeq;
  }

  async *items(signal: AbortSignal): AsyncGenerator<SubscriptionItem, void> {
    const left = new AbortController();
    const events = this.#options.open(AbortSignal.any([signal, left.signal]), {
      caughtUp: (seq) => this.#add({ type: "caught_up", seq }),
      reached: (seq) => this.#pass(seq),
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
          this.#yielded = { seq: item.seq, at: performance.now() };
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
        const { seq } = value;
        if (this.#options.isWanted(value)) {
          this.#passedSeq = seq - 1;
          if (this.#isFar && this.#queue.length === 0) this.#add({ type: "bookmark", seq: this.#passedSeq });
          return this.#add({ type: "event", seq, recorded: value });
        }
        this.#pass(seq);
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

  #pass(seq: number): void {
    this.#passedSeq = seq;
    this.#bookmarkIfDue();
  }

  get #isFar(): boolean {
    return this.#passedSeq - this.#yielded.seq >= this.#options.bookmarks.events;
  }

  /** Queues a bookmark now or when it is due, unless another item that says the position is queued before. */
  #bookmarkIfDue(): void {
    if (this.#queue.length > 0 || this.#passedSeq <= this.#yielded.seq) return;
    const wait = this.#yielded.at + this.#options.bookmarks.ms - performance.now();
    if (wait <= 0 || this.#isFar) this.#add({ type: "bookmark", seq: this.#passedSeq });
    else {
      this.#bookmarkTimer ??= setTimeout(() => {
        this.#bookmarkTimer = undefined;
        this.#bookmarkIfDue();
      }, wait);
    }
  }
}
