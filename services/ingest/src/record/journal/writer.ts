import { setImmediate } from "node:timers/promises";
import type { Cursor, LastOfSource, LogWriter, NewMessage, PublishOutcome } from "@tapedeck/shared/log/log";
import type { Sequence } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";

/** What the log takes in one atomic batch. */
export const largestBatch = { messages: 1_000, bytes: 4 * 1024 * 1024 } as const;

/** Above this many bytes in the queue, whoever appends should wait for `room`. */
const roomyBytes = 8 * 1024 * 1024;

/** The log holds something of this source that this writer has not written: whoever owns the writer starts over from the log. */
export class LostRaceError extends Error {
  override readonly name = "LostRaceError";
  readonly source: SourceName;
  readonly last: LastOfSource | undefined;
  constructor(source: SourceName, last: LastOfSource | undefined) {
    super(`another writer wrote ${source} (last message: ${last === undefined ? "gone" : last.seq})`);
    this.source = source;
    this.last = last;
  }
}

export class WriterClosedError extends Error {
  override readonly name = "WriterClosedError";
}

/** The last of the messages that are known to be in the log. */
export type Acknowledged = { readonly seq: Sequence; readonly cursor: Cursor };

export type WriterOptions = {
  readonly log: LogWriter;
  readonly source: SourceName;
  /**
   * An id that no writer has used before: a message that an earlier writer left in flight and that lands late must not
   * look like ours.
   */
  readonly writer: string;
  /** The source's last message that the owner has read: everything appended comes after it. 0: it has none. */
  readonly afterSeq: Sequence;
  /** Told after each publish that ended otherwise than acknowledged. */
  readonly onTrouble?: (published: Exclude<PublishOutcome, { outcome: "acknowledged" }>) => void;
  /** Told after messages are known to be in the log. */
  readonly onAcknowledged?: (acknowledged: number, messages: number, last: Acknowledged) => void;
  /** What is appended in one turn of the event loop is published together, and not the first of it at once. */
  readonly together?: boolean;
  /** Waiting times between attempts, in ms. */
  readonly retry?: { readonly first: number; readonly most: number };
};

/**
 * Writes one source's messages to the log: in order, once each, with one publish in flight. Messages are numbered 1, 2, 3 …
 * as they are appended.
 */
export type SourceWriter = AsyncDisposable & {
  /**
   * Queues messages that get into the log together or not at all (unless they are more than a batch takes). Gives the
   * number of the last one.
   */
  append(group: readonly NewMessage[]): number;
  readonly appended: number;
  /** How many are in the log. */
  readonly acknowledged: number;
  /** Where the last one of the source stands: what is appended from now on comes after it. */
  readonly lastSeq: Sequence;
  /** Resolves when the n-th message is in the log. Rejects with what ended the writer. */
  reached(count: number): Promise<void>;
  /** Resolves when the queue is short enough to append more. Rejects with what ended the writer. */
  room(): Promise<void>;
  /** Resolves with what ended the writer: LostRaceError, WriterClosedError, or a fault in what was appended. */
  readonly ended: Promise<Error>;
};

type Waiter = { readonly count: number; readonly resolve: () => void; readonly reject: (cause: Error) => void };

export function openWriter(options: WriterOptions): SourceWriter {
  const {
    log,
    source,
    writer,
    onTrouble,
    onAcknowledged,
    retry = { first: 50, most: 2_000 },
    together = false,
  } = options;
  const stop = new AbortController();
  const ending = Promise.withResolvers<Error>();
  let ended: Error | undefined;

  let queue: (readonly NewMessage[])[] = [];
  let queuedBytes = 0;
  let appended = 0;
  let acknowledged = 0;
  let expected = options.afterSeq;
  let waiters: Waiter[] = [];
  let roomWaiters: Waiter[] = [];
  let wake = Promise.withResolvers<void>();

  const end = (cause: Error) => {
    if (ended !== undefined) return;
    ended = cause;
    stop.abort();
    wake.resolve();
    for (const { reject } of [...waiters, ...roomWaiters]) reject(cause);
    ending.resolve(cause);
  };

  const acknowledge = (messages: readonly NewMessage[], lastSeq: Sequence) => {
    expected = lastSeq;
    acknowledged += messages.length;
    queuedBytes -= bytesOf(messages);
    for (const waiter of waiters) if (waiter.count <= acknowledged) waiter.resolve();
    waiters = waiters.filter(({ count }) => count > acknowledged);
    if (queuedBytes <= roomyBytes) {
      for (const { resolve } of roomWaiters) resolve();
      roomWaiters = [];
    }
    const cursor = messages.at(-1)?.cursor;
    if (cursor !== undefined) onAcknowledged?.(acknowledged, messages.length, { seq: lastSeq, cursor });
  };

  /** Publishes one batch until the log has it. The batch stays the same however often it is tried. */
  const settle = async (batch: readonly NewMessage[]) => {
    const waits = backoff(retry.first, retry.most);
    const forgottenAfterMs = Math.min(...batch.map(({ ttlSeconds = Number.POSITIVE_INFINITY }) => ttlSeconds)) * 500;
    const began = Date.now();
    let left = batch;
    while (left.length > 0 && ended === undefined) {
      const published = await log.publish(source, writer, left, expected);
      if (published.outcome === "acknowledged") return acknowledge(left, published.lastSeq);
      onTrouble?.(published);
      if (published.outcome === "refused") {
        await delay(waits.next(), stop.signal);
        continue;
      }
      const last = await askLast();
      if (last === "ended") return;
      const covered = coveredBy(last, left, { writer, expected });
      // It may have been there and have expired, which only a start from the log allows for.
      const isForgotten = covered === 0 && Date.now() - began > forgottenAfterMs;
      if (covered === undefined || isForgotten) return end(new LostRaceError(source, last));
      if (covered > 0 && last !== undefined) {
        acknowledge(left.slice(0, covered), last.seq);
        left = left.slice(covered);
      } else {
        // It may still land: the same batch with the same expectation makes one of the two fail, and we come here again.
        await delay(waits.next(), stop.signal);
      }
    }
  };

  const askLast = async (): Promise<LastOfSource | undefined | "ended"> => {
    const waits = backoff(retry.first, retry.most);
    while (ended === undefined) {
      try {
        return await log.lastOf(source);
      } catch (cause) {
        onTrouble?.({ outcome: "unknown", cause });
        await delay(waits.next(), stop.signal);
      }
    }
    return "ended";
  };

  const run = async () => {
    while (ended === undefined) {
      if (queue.length === 0) {
        await wake.promise;
        wake = Promise.withResolvers();
        // Each batch is a round trip, and a sync of the log's disk.
        if (together) await setImmediate();
        continue;
      }
      const { groups, batch } = nextBatch(queue);
      queue = queue.slice(groups);
      await settle(batch);
    }
  };
  const running = run().catch((cause: Error) => end(cause));

  return {
    append(group) {
      for (const piece of fitting(group)) queue.push(piece);
      queuedBytes += bytesOf(group);
      appended += group.length;
      wake.resolve();
      return appended;
    },
    get appended() {
      return appended;
    },
    get acknowledged() {
      return acknowledged;
    },
    get lastSeq() {
      return expected;
    },
    reached(count) {
      if (count <= acknowledged) return Promise.resolve();
      if (ended !== undefined) return Promise.reject(ended);
      return new Promise((resolve, reject) => waiters.push({ count, resolve, reject }));
    },
    room() {
      if (ended !== undefined) return Promise.reject(ended);
      if (queuedBytes <= roomyBytes) return Promise.resolve();
      return new Promise((resolve, reject) => roomWaiters.push({ count: 0, resolve, reject }));
    },
    ended: ending.promise,
    async [Symbol.asyncDispose]() {
      end(new WriterClosedError(`the writer of ${source} was closed`));
      await running;
    },
  };
}

/**
 * How many of the batch's messages the log has, judged by the source's last message; undefined when that is somebody
 * else's and newer than what we expected.
 */
function coveredBy(
  last: LastOfSource | undefined,
  batch: readonly NewMessage[],
  { writer, expected }: { readonly writer: string; readonly expected: number },
): number | undefined {
  if ((last?.seq ?? 0) === expected) return 0;
  if (last === undefined || last.seq < expected || last.mark.writer !== writer) return undefined;
  const there = cursorKey(last.mark.cursor);
  const index = batch.findIndex(({ cursor }) => cursorKey(cursor) === there);
  return index === -1 ? undefined : index + 1;
}

/** Each message moves one ordinal on, so no two messages of a source have the same cursor. */
function cursorKey({ session, ordinals }: Cursor): string {
  const sorted = Object.entries(ordinals).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([session, sorted]);
}

/** The whole groups at the queue's head that fit into one batch. */
function nextBatch(queue: readonly (readonly NewMessage[])[]): { groups: number; batch: readonly NewMessage[] } {
  const batch: NewMessage[] = [];
  let bytes = 0;
  let groups = 0;
  for (const group of queue) {
    bytes += bytesOf(group);
    if (groups > 0 && (batch.length + group.length > largestBatch.messages || bytes > largestBatch.bytes)) break;
    batch.push(...group);
    groups++;
  }
  return { groups, batch };
}

/** A group as it is, or in pieces when one batch can't take it. */
function fitting(group: readonly NewMessage[]): readonly (readonly NewMessage[])[] {
  if (group.length <= largestBatch.messages && (group.length === 1 || bytesOf(group) <= largestBatch.bytes)) {
    return group.length === 0 ? [] : [group];
  }
  const pieces: (readonly NewMessage[])[] = [];
  for (let rest = group; rest.length > 0; ) {
    const { batch } = nextBatch(rest.map((message) => [message]));
    pieces.push(batch);
    rest = rest.slice(batch.length);
  }
  return pieces;
}

function bytesOf(messages: readonly NewMessage[]): number {
  return messages.reduce((sum, { event }) => sum + event.byteLength, 0);
}
