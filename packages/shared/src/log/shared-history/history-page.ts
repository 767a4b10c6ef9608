import { startTimer, stopTimer, type Timer } from "../../sync/timers.ts";
import type { SharedEvent } from "../live/shared-event.ts";
import type { Offset, Sequence } from "../offset.ts";
import type { MessageRange } from "../reading/history.ts";

/** What was read of a range: all of it up to the message `upTo`. */
export type PageContent = { readonly events: readonly SharedEvent[]; readonly upTo: Sequence; readonly bytes: number };

/** Undefined: the signal has aborted. */
export type ReadPage = (range: MessageRange, signal: AbortSignal) => Promise<PageContent | undefined>;

/** A page is what one pull brings, up to the message with which it has so many bytes in memory. */
export const pageMessages = 512;
export const pageBytes = 1024 * 1024;

/** Compressed batches of so many bytes together make about one page. */
export const pagePull = { messages: pageMessages, bytes: 192 * 1024 } as const;

/** What an empty page counts. */
const minPageBytes = 16 * 1024;

/** A page that was not read for this long is dropped, also while a slow reader is inside. */
const keepMs = 5_000;

/** Those who read the same subjects have the same key. */
export function keyOf(subjects: readonly string[]): string {
  return subjects.join(" ");
}

/** The keeper of all pages. */
export type PageOwner = { hasRoom(bytes: number): boolean; remove(page: HistoryPage): void };

/** A part of the log's history, for all its readers. It has events from when it is ready until it is dropped. */
export class HistoryPage {
  readonly range: MessageRange;
  readonly key: string;
  /** Rejects when the log could not be read. */
  readonly ready: Promise<void>;
  readonly #owner: PageOwner;
  readonly #over = new AbortController();
  #content: PageContent | undefined;
  #idle: Timer | undefined;
  #readers = 0;
  #isDropped = false;
  #isTimedOut = false;

  constructor(range: MessageRange, read: ReadPage, owner: PageOwner) {
    this.range = range;
    this.key = keyOf(range.subjects);
    this.#owner = owner;
    this.ready = this.#load(read);
    this.ready.catch(() => {}); // each reader gets it
  }

  /** Empty before it is ready, and after it was dropped. */
  get events(): readonly SharedEvent[] {
    return this.#content?.events ?? [];
  }

  /** What it has all of, or may have while it is being read. */
  get upTo(): Sequence {
    const { first, last } = this.range;
    return this.#content?.upTo ?? Math.min(last, first + pageMessages - 1);
  }

  /** Whether it has this message, or may have it when it is read. */
  mayHave(next: Sequence): boolean {
    const { first } = this.range;
    // A page from the log's first message on begins with what the log still has.
    return first <= next && next <= this.upTo && (first > 1 || next <= 1);
  }

  /** Index of the first event after an offset. */
  indexAfter(offset: Offset): number {
    const { events } = this;
    let low = 0;
    let high = events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((events[middle]?.offset ?? offset) > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  get isReady(): boolean {
    return this.#content !== undefined;
  }

  get isDropped(): boolean {
    return this.#isDropped;
  }

  /** Erased events must not be served from memory, not even from a batch that a reader has. */
  forget(session: string, erasedAt: Offset): void {
    if (!this.isReady) this.drop();
    const end = this.indexAfter(erasedAt);
    for (let index = 0; index < end; index++) this.events[index]?.forget(session);
  }

  /** It was dropped because its readers were too slow. */
  get isTimedOut(): boolean {
    return this.#isTimedOut;
  }

  get isUsed(): boolean {
    return this.#readers > 0;
  }

  get bytes(): number {
    return this.#content === undefined ? pageBytes : Math.max(minPageBytes, this.#content.bytes);
  }

  /** A reader waits for it, or is inside. To be disposed of when it leaves. */
  enter(): Disposable {
    this.#readers++;
    return {
      [Symbol.dispose]: () => {
        this.#readers--;
        // Nobody is left to read for.
        if (this.#readers === 0 && !this.isReady) this.drop();
      },
    };
  }

  /** A reader takes events. */
  use(): void {
    this.#idle?.refresh();
  }

  drop(): void {
    this.#isDropped = true;
    this.#content = undefined;
    stopTimer(this.#idle);
    this.#over.abort();
    this.#owner.remove(this);
  }

  async #load(read: ReadPage): Promise<void> {
    try {
      const content = await read(this.range, this.#over.signal);
      if (content === undefined || this.#isDropped) return;
      if (!this.#owner.hasRoom(content.bytes - pageBytes)) throw new Error("the page is too large to be shared");
      this.#content = content;
      this.#idle = startTimer(() => {
        this.#isTimedOut = true;
        this.drop();
      }, keepMs).unref();
    } catch (error) {
      if (this.#isDropped) return;
      this.drop();
      throw error;
    }
  }
}
