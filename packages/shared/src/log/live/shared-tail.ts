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

  /** The last message that was delivered to followers, now or by an earlier tail. */
  get lastSeen(): Sequence {
    return Math.max(this.#lastSeen, lastOf(this.#tail));
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
    this.#lastSeen = this.lastSeen;
    this.#tail = undefined;
    const closing = Promise.resolve(tail[Symbol.asyncDispose]()).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

function lastOf(tail: Tail | undefined): Sequence {
  try {
    return sequenceOf(tail?.now()?.last ?? logStart);
  } catch {
    return 0; // it has ended, and its followers get the reason
  }
}
