import { startTimer, stopTimer, type Timer } from "../../sync/timers.ts";
import { logStart, type Sequence, sequenceOf } from "../offset.ts";
import type { Tail } from "./tail.ts";

/** How long a tail waits for the next follower. */
const defaultIdleMs = 60_000;

/** The tail of a log while somebody follows it, and for a minute after: a log that nobody follows costs nothing. */
export class SharedTail implements AsyncDisposable {
  readonly #open: () => Tail;
  readonly #idleMs: number;
  #tail: Tail | undefined;
  #followers = 0;
  #isClosed = false;
  #idle: Timer | undefined;
  #lastSeen: Sequence = 0;
  readonly #closing = new Set<Promise<void>>();

  constructor(open: () => Tail, idleMs = defaultIdleMs) {
    this.#open = open;
    this.#idleMs = idleMs;
  }

  get isOpen(): boolean {
    return this.#tail !== undefined;
  }

  /** The last message that was delivered to followers. */
  get lastSeen(): Sequence {
    try {
      this.#lastSeen = Math.max(this.#lastSeen, sequenceOf(this.#tail?.now()?.last ?? logStart));
    } catch {
      // It has ended, and its followers get the reason.
    }
    return this.#lastSeen;
  }

  /** To be released once. Throws when the log was closed. */
  hold(): { readonly tail: Tail; readonly release: () => void } {
    if (this.#isClosed) throw new Error("the log was closed");
    stopTimer(this.#idle);
    this.#followers++;
    this.#tail ??= this.#open();
    return { tail: this.#tail, release: () => this.#release() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#close();
    await Promise.all(this.#closing);
  }

  #release(): void {
    this.#followers--;
    if (this.#followers === 0) this.#idle = startTimer(() => this.#close(), this.#idleMs).unref();
  }

  #close(): void {
    stopTimer(this.#idle);
    const tail = this.#tail;
    if (tail === undefined) return;
    void this.lastSeen;
    this.#tail = undefined;
    const closing = this.#ended(tail);
    this.#closing.add(closing);
    void closing.then(() => this.#closing.delete(closing));
  }

  async #ended(tail: Tail): Promise<void> {
    await tail[Symbol.asyncDispose]();
  }
}
