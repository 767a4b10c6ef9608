// Ranges of the log, read pull by pull.
//
//   reader A --turn--> pull (64 … 1,000 messages, 1 MiB) --> given in batches --> next turn …
//   reader B --------turn--> pull --> …                    (a semaphore hands out the turns)
//
// 1. A reader holds one pull at most. A reader that pauses blocks no other. After 5 s it drops what its caller has not taken,
//    and reads that again later.
// 2. Messages that were dropped at the log's beginning, or can't be read, end the reading with an OutOfRangeError, after
//    everything before them. (Holes further on are reported by log/holes/.)
// 3. The leader says where the range ends, because a replica may lag behind and have nothing more to deliver.
// 4. A reader that has to create its consumer again checks that the stream is still the same, so it never mixes two.
// How losses are distinguished from erasures: docs/decisions/0019-damage-is-found-by-cursors.md.
import { abortable } from "../../sync/abortable.ts";
import { backoff, delay } from "../../sync/delay.ts";
import { LinkedController } from "../../sync/linked-controller.ts";
import type { Semaphore } from "../../sync/semaphore.ts";
import { startTimer, stopTimer } from "../../sync/timers.ts";
import { bytesInMemory } from "../batch/channel-events.ts";
import type { Shift } from "../live/shift.ts";
import { LogReplacedError } from "../log.ts";
import type { Sequence } from "../offset.ts";
import { OutOfRangeError } from "../out-of-range.ts";
import { addConsumer, type Consumer, type Delivered, exceedsMaxBytes, pull, type StreamAccess } from "./consumer.ts";
import type { Warn } from "./decode.ts";
import { hold } from "./hold.ts";
import type { Losses } from "./losses.ts";

export type HistoryDeps<T> = StreamAccess & {
  readonly semaphore: Semaphore;
  /** The last message that matches, 0 for none. */
  readonly lastMatch: (subjects: readonly string[]) => Promise<Sequence>;
  /** What a message holds for the reader, which may be nothing. */
  readonly read: (message: Delivered) => readonly T[];
  readonly warn: Warn;
  /** @throws LogReplacedError when the stream is another one than at the beginning */
  readonly checkSame: () => Promise<void>;
  /** Decides whether missing messages are a loss. */
  readonly losses: Losses;
  /** Shared by all readers of history. */
  readonly shift: Shift;
  /** The reading rejects when the log fails or is silent for so long. Undefined: it waits, and tries again. */
  readonly maxSilenceMs?: number;
};

/** The most messages that one pull brings, and their bytes as they are stored. */
export type PullSize = { readonly messages: number; readonly bytes: number };

/** The most that one turn reads, which bounds what a paused reader holds. A single message always fits. */
const pullBytes = 1024 * 1024;
const largestPull = 1_000;
const firstPull: PullSize = { messages: 64, bytes: pullBytes };

/**
 * Messages of a pull are given together up to this: most hold little for the reader, and a batch of its own would cost more
 * than that. A larger batch would hold more for a reader that has stopped, and fill its client's window at once.
 */
const together = { events: 32, bytes: 128 * 1024 } as const;

/** The messages to read: both inclusive. `subjects` filter by the subjects of messages. */
export type MessageRange = { readonly first: Sequence; readonly last: Sequence; readonly subjects: readonly string[] };

/**
 * Reads pull by pull, each in its own turn, so a paused reader blocks no other. A range from message 1 on begins with what
 * the log still has.
 * @throws OutOfRangeError where messages were dropped or can't be read, after all before them were delivered
 */
export async function* readHistory<T>(
  deps: HistoryDeps<T>,
  { first, last: end, subjects }: MessageRange,
  signal: AbortSignal,
): AsyncGenerator<readonly T[], void> {
  const { shift } = deps;
  const reader = new RangeReader(deps, { first, last: end, subjects }, signal);
  try {
    while (reader.next <= end && !signal.aborted) {
      const pulled = await reader.pull();
      if (pulled === undefined) return;
      const { messages, complete, loss } = pulled;

      using held = hold(messages);
      for (let some = takeTogether(deps, held, end); some !== undefined; some = takeTogether(deps, held, end)) {
        if (signal.aborted) return;
        if (some.batch.length > 0) yield some.batch;
        reader.passed(some.upTo);
        if (shift.isOver) await shift.next();
      }
      if (reader.next > end) return;
      if (held.dropped) reader.forget();
      else if (loss !== undefined) throw loss;
      else if (complete) return;
      reader.adjust(held.dropped);
    }
  } finally {
    reader.forget();
  }
}

/** The next messages of a pull that are given together. Undefined: there are no more. */
function takeTogether<T>(
  { read, shift }: Pick<HistoryDeps<T>, "read" | "shift">,
  held: HeldMessages,
  end: Sequence,
): { readonly batch: readonly T[]; readonly upTo: Sequence } | undefined {
  const batch: T[] = [];
  let upTo: Sequence | undefined;
  let bytes = 0;
  for (let message = held.next(); message !== undefined; message = held.next()) {
    if (message.seq > end) return { batch, upTo: end };
    const found = read(message);
    batch.push(...found);
    // A batch that waits for its reader holds the messages of its events.
    if (found.length > 0) bytes += bytesInMemory(message.data);
    upTo = message.seq;
    if (batch.length >= together.events || bytes >= together.bytes || shift.isOver) break;
  }
  return upTo === undefined ? undefined : { batch, upTo };
}

/** Messages in their order. Nothing else of the range stands up to `upTo`. */
export type Stretch = { readonly messages: readonly Delivered[]; readonly upTo: Sequence };

/**
 * The beginning of a range, as much as one pull brings, and not more than `max`. Waits while the log is unavailable.
 * Undefined: the signal has aborted.
 * @throws OutOfRangeError where messages were dropped or can't be read, or LogReplacedError
 */
export async function readStretch(
  deps: Omit<HistoryDeps<never>, "read">,
  range: MessageRange,
  max: PullSize,
  signal: AbortSignal,
): Promise<Stretch | undefined> {
  const reader = new RangeReader(deps, range, signal, max);
  try {
    for (;;) {
      const pulled = await reader.pull();
      if (pulled === undefined) return undefined;
      const { messages, complete, loss } = pulled;
      if (loss !== undefined) throw loss;
      if (messages.length === 0 && !complete) continue;
      // Checked after reading, so that nothing of a replaced stream is returned.
      await abortable(deps.checkSame(), signal);
      const upTo = messages.at(-1)?.seq ?? range.last;
      return { messages, upTo: complete ? Math.max(upTo, range.last) : upTo };
    }
  } finally {
    reader.forget();
  }
}

type HeldMessages = { next(): Delivered | undefined };

type CheckedPull = {
  /** All of them can be given. */
  readonly messages: Delivered[];
  /** The log holds nothing further of the range: the message at its end may be gone. */
  readonly complete: boolean;
  /** To be thrown behind the messages. */
  readonly loss: OutOfRangeError | undefined;
  /** There is more to come, from a replica that lags behind the leader. */
  readonly isBehind: boolean;
};

/** One reader's place in its range, and its consumer. */
class RangeReader {
  readonly #deps: Omit<HistoryDeps<never>, "read">;
  readonly #range: MessageRange;
  readonly #signal: AbortSignal;
  readonly #retry = backoff(50, 2_000);
  #reading: ConsumerProgress | undefined;
  #hasStarted = false;
  #next: Sequence;
  #size: PullSize;
  /** Nothing is missing before the first message of a reader that takes what there is. */
  #isAnywhere: boolean;

  constructor(deps: Omit<HistoryDeps<never>, "read">, range: MessageRange, signal: AbortSignal, size = firstPull) {
    [this.#deps, this.#range, this.#signal, this.#size] = [deps, range, signal, size];
    this.#next = range.first;
    this.#isAnywhere = range.first <= 1;
  }

  get next(): Sequence {
    return this.#next;
  }

  passed(seq: Sequence): void {
    this.#next = seq + 1;
    this.#isAnywhere = false;
  }

  /** A slow reader would otherwise read the same messages again and again. */
  adjust(isSlow: boolean): void {
    this.#size = { ...this.#size, messages: isSlow ? 1 : Math.min(largestPull, this.#size.messages * 2) };
  }

  forget(): void {
    this.#reading = forget(this.#deps, this.#reading);
  }

  /** In its turn, and again until one worked. Undefined: the signal has aborted. */
  async pull(): Promise<CheckedPull | undefined> {
    const { semaphore, warn, maxSilenceMs } = this.#deps;
    const signal = this.#signal;
    while (!signal.aborted) {
      const release = await semaphore.acquire(signal);
      if (release === undefined) return undefined;
      try {
        const pulled = await this.#pullOnce();
        release();
        if (pulled.messages.length > 0) this.#retry.reset();
        else if (pulled.isBehind) await delay(this.#retry.next(), signal);
        return pulled;
      } catch (err) {
        this.forget();
        if (err instanceof LogReplacedError || err instanceof OutOfRangeError) throw err;
        if (err instanceof ForgottenError || signal.aborted) continue;
        if (maxSilenceMs !== undefined) throw err;
        warn("reading history failed; trying again", { next: this.#next, err });
        release();
        await delay(this.#retry.next(), signal);
      } finally {
        release();
      }
    }
    return undefined;
  }

  async #pullOnce(): Promise<CheckedPull> {
    const { semaphore, lastMatch } = this.#deps;
    const { last: end, subjects } = this.#range;
    const reading = await this.#consumer();
    // No more than the range can hold: what comes after it would be read for nothing.
    const size = { ...this.#size, messages: Math.min(this.#size.messages, end - this.#next + 1) };
    const { messages, drained } = await pullSome(this.#deps, reading, size, this.#signal);
    // Another reader waits for the turn; keeping this consumer would exceed the number of turns.
    if (semaphore.waiting > 0) this.forget();
    const last = messages.at(-1)?.seq ?? this.#next - 1;
    const complete = last >= end || (drained && (await this.#answered(lastMatch(subjects))) <= last);
    const isStuck = drained && !complete && messages.length === 0;
    if (isStuck && (await this.#isPastUnreadable())) return { messages, complete, loss: undefined, isBehind: false };
    const missing = this.#firstMissing(messages, complete);
    const loss = missing && (await this.#answered(this.#deps.losses.dropped(missing)));
    const readable = loss === undefined ? messages : messages.filter(({ seq }) => seq < (missing as Sequence));
    return { messages: readable, complete, loss, isBehind: isStuck };
  }

  async #consumer(): Promise<ConsumerProgress> {
    if (this.#reading !== undefined) return this.#reading;
    const consumer = await this.#answered(addConsumer(this.#deps, this.#next, this.#range.subjects));
    this.#reading = { consumer, delivered: 0 };
    // The consumer before may have gone with its stream.
    if (this.#hasStarted) await this.#answered(this.#deps.checkSame());
    this.#hasStarted = true;
    return this.#reading;
  }

  /** True: continues after what can't be read. */
  async #isPastUnreadable(): Promise<boolean> {
    // The next consumer may be on another server.
    this.forget();
    const found = await this.#answered(this.#deps.losses.unreadable(this.#next, this.#range.subjects));
    if (found === undefined) return false;
    if ("error" in found) throw found.error;
    this.#next = found.continueAt;
    return true;
  }

  /** The first message that may have been dropped before it could be read. A filter hides which of them match. */
  #firstMissing(messages: readonly Delivered[], complete: boolean): Sequence | undefined {
    const { last: end, subjects } = this.#range;
    if (subjects.length > 0) return this.#isAnywhere ? undefined : this.#next;
    let next = this.#isAnywhere ? (messages[0]?.seq ?? end + 1) : this.#next;
    for (const { seq } of messages) {
      if (seq !== next) return next;
      next++;
    }
    return complete && next <= end ? next : undefined;
  }

  async #answered<A>(pending: Promise<A>): Promise<A> {
    using over = new LinkedController(this.#signal, this.#deps.maxSilenceMs);
    return await abortable(pending, over.signal);
  }
}

/** The last message of each subject. */
export async function* readLasts<T>(
  deps: Pick<HistoryDeps<T>, "semaphore" | "read"> & StreamAccess,
  subjects: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<T, void> {
  const { semaphore, read } = deps;
  let reading: ConsumerProgress | undefined;
  try {
    for (let isDrained = false; !isDrained && !signal.aborted; ) {
      const release = await semaphore.acquire(signal);
      if (release === undefined) return;
      let pulled: Pulled;
      try {
        reading ??= { consumer: await addConsumer(deps, "last of each subject", subjects), delivered: 0 };
        pulled = await pullSome(deps, reading, { messages: largestPull, bytes: pullBytes }, signal);
      } finally {
        release();
      }
      isDrained = pulled.drained;
      for (const message of pulled.messages) yield* read(message);
    }
  } finally {
    forget(deps, reading);
  }
}

/** The server has forgotten the consumer, because of too long a time without a pull. */
class ForgottenError extends Error {}

/** A consumer, and how many messages it has delivered to us. */
type ConsumerProgress = { readonly consumer: Consumer; delivered: number };

type Pulled = { readonly messages: Delivered[]; readonly drained: boolean };

async function pullSome(
  deps: StreamAccess,
  reading: ConsumerProgress,
  { messages, bytes }: PullSize,
  signal: AbortSignal,
): Promise<Pulled> {
  const pulled = await pullOnce(deps, reading, { batch: messages, max_bytes: bytes }, signal);
  if (pulled.messages.length > 0 || pulled.drained) return pulled;
  return pullOnce(deps, reading, { batch: 1 }, signal); // the next message is larger than a pull
}

async function pullOnce(
  deps: StreamAccess,
  reading: ConsumerProgress,
  request: { readonly batch: number; readonly max_bytes?: number },
  signal: AbortSignal,
): Promise<Pulled> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const messages: Delivered[] = [];
  const abort = () => reject(signal.reason);
  const late = startTimer(() => reject(new Error("the log did not answer in time")), deps.timeoutMs);
  signal.addEventListener("abort", abort);
  using _pull = pull(deps, reading.consumer, { ...request, no_wait: true }, (answer) => {
    if (answer.type === "status") {
      if (answer.code === 404 || answer.code === 408) resolve(true);
      else if (answer.code === 503) reject(new ForgottenError());
      else if (answer.code === 409 && exceedsMaxBytes(answer.description)) resolve(false);
      else reject(new Error(`the log answered ${answer.code} ${answer.description}`));
    } else if (answer.message.deliverySeq !== ++reading.delivered) {
      reject(new Error("a message was lost in transit"));
    } else {
      late.refresh();
      messages.push(answer.message);
      if (messages.length === request.batch) resolve(false);
    }
  });
  try {
    return { drained: await promise, messages };
  } finally {
    stopTimer(late);
    signal.removeEventListener("abort", abort);
  }
}

function forget({ jsm, streamName }: StreamAccess, reading: ConsumerProgress | undefined): undefined {
  // The server would forget the consumer anyway, only later.
  if (reading !== undefined) jsm.consumers.delete(streamName, reading.consumer.name).catch(() => {});
}
