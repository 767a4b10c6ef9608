// How a source's events get into the log.
//
//   append() --> queue --> turn --> nextBatch(): one message --> settle(): publish, expecting #lastSeq --> acknowledged
//
// 1. Events are written in the order in which they were appended, once each, whatever is lost on the way, until the
//    writer ends.
// 2. One message is being written at a time. It names the message that it must follow, so of two writers one fails.
// 3. A publish whose answer is lost is settled by asking the log for the source's last message before anything follows.
// 4. A writer that has ended starts no other publish. `ended` says why; its owner begins anew from the log.
// Why a message holds several events: docs/decisions/0033-record-batches.md. Turns: docs/decisions/0069-writers-publish-in-turns.md.
// A full disk: docs/decisions/0020-a-full-disk.md.
import { groupsOf, type MessageGroup, nextBatch } from "@tapedeck/shared/log/grouping";
import type { Cursor, NewEvent } from "@tapedeck/shared/log/log";
import type { Sequence } from "@tapedeck/shared/log/offset";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { Fifo } from "./fifo.ts";
import { type PublishTurns, publishTurns } from "./publish-turns.ts";
import { type SettleOptions, settle } from "./settle.ts";

/** Above this many bytes in the queue, callers should wait for `room`. */
const maxQueuedBytes = 8 * 1024 * 1024;

export class WriterClosedError extends Error {
  override readonly name = "WriterClosedError";
}

/** The last event that is known to be in the log. */
export type Acknowledged = { readonly seq: Sequence; readonly cursor: Cursor };

export type WriterOptions = SettleOptions & {
  /** The source's last message that the owner has read: everything appended comes after it. 0: it has none. */
  readonly afterSeq: Sequence;
  /** Called after each message that is known to be in the log. */
  readonly onAcknowledged?: (acknowledged: number, events: number, last: Acknowledged) => void;
  /** Default: those of all writers of this process. */
  readonly turns?: PublishTurns;
};

type Waiter = { readonly count: number; readonly resolve: () => void; readonly reject: (cause: Error) => void };

/**
 * Writes one source's events to the log: in order, once each, with one publish in flight. What is appended meanwhile makes
 * the next messages. Events are numbered 1, 2, 3 … as they are appended.
 */
export class SourceWriter implements AsyncDisposable {
  /** Resolves with what ended the writer: LostRaceError, WriterClosedError, or a fault in what was appended. */
  readonly ended: Promise<Error>;

  readonly #options: WriterOptions;
  readonly #stop = new AbortController();
  readonly #ending = Promise.withResolvers<Error>();
  readonly #running: Promise<void>;
  #cause: Error | undefined;
  readonly #queue = new Fifo<MessageGroup>();
  #queuedBytes = 0;
  #appended = 0;
  #acknowledged = 0;
  #lastSeq: Sequence;
  #waiters: Waiter[] = [];
  #roomWaiters: Waiter[] = [];
  /** Rings when something is appended, and when the writer ends. */
  readonly #changed = new Notifier();

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#lastSeq = options.afterSeq;
    this.ended = this.#ending.promise;
    this.#running = this.#run().catch((cause: Error) => this.#end(cause));
  }

  get appended(): number {
    return this.#appended;
  }

  /** How many of the appended events are in the log. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** The source's last message: what is appended from now on comes after it. */
  get lastSeq(): Sequence {
    return this.#lastSeq;
  }

  /** More can be appended without waiting for `room`. */
  get hasRoom(): boolean {
    return this.#cause === undefined && this.#queuedBytes <= maxQueuedBytes;
  }

  /**
   * Queues events. Those that fit together and follow each other get into the log together or not at all, up to
   * `largestGroup` (grouping.ts). Gives the number of the last one.
   */
  append(events: readonly NewEvent[]): number {
    for (const group of groupsOf(events)) {
      this.#queue.push(group);
      this.#queuedBytes += group.bytes;
    }
    this.#appended += events.length;
    this.#changed.ring();
    return this.#appended;
  }

  /** Resolves when the n-th event is in the log. Rejects with what ended the writer. */
  reached(count: number): Promise<void> {
    if (count <= this.#acknowledged) return Promise.resolve();
    if (this.#cause !== undefined) return Promise.reject(this.#cause);
    return new Promise((resolve, reject) => this.#waiters.push({ count, resolve, reject }));
  }

  /** Resolves when the queue is short enough to append more. Rejects with what ended the writer. */
  room(): Promise<void> {
    if (this.#cause !== undefined) return Promise.reject(this.#cause);
    if (this.#queuedBytes <= maxQueuedBytes) return Promise.resolve();
    return new Promise((resolve, reject) => this.#roomWaiters.push({ count: 0, resolve, reject }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end(new WriterClosedError(`the writer of ${this.#options.source} was closed`));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { turns = publishTurns } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      if (this.#queue.length === 0) {
        await this.#changed.next();
        await turns.next();
        continue;
      }
      if (signal.aborted) return;
      const { groups, ...message } = nextBatch(this.#queue);
      this.#queue.drop(groups);
      const seq = await settle(this.#options, message, this.#lastSeq, signal);
      if (seq === undefined) return;
      this.#acknowledge(message, seq);
    }
  }

  #acknowledge({ events, bytes }: MessageGroup, seq: Sequence): void {
    this.#lastSeq = seq;
    this.#acknowledged += events.length;
    this.#queuedBytes -= bytes;
    for (const { count, resolve } of this.#waiters) if (count <= this.#acknowledged) resolve();
    this.#waiters = this.#waiters.filter(({ count }) => count > this.#acknowledged);
    if (this.#queuedBytes <= maxQueuedBytes) {
      for (const { resolve } of this.#roomWaiters) resolve();
      this.#roomWaiters = [];
    }
    const cursor = events.at(-1)?.cursor;
    if (cursor !== undefined) this.#options.onAcknowledged?.(this.#acknowledged, events.length, { seq, cursor });
  }

  #end(cause: Error): void {
    if (this.#cause !== undefined) return;
    this.#cause = cause;
    this.#stop.abort();
    this.#changed.ring();
    for (const { reject } of [...this.#waiters, ...this.#roomWaiters]) reject(cause);
    this.#ending.resolve(cause);
  }
}
