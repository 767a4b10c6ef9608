import { abortable } from "../sync/abortable.ts";
import { backoff, delay } from "../sync/delay.ts";
import type { Semaphore } from "../sync/semaphore.ts";
import { addConsumer, type Consumer, type Delivered, exceedsMaxBytes, pull, type StreamAccess } from "./consumer.ts";
import type { Decode, Warn } from "./decode.ts";
import type { RecordedEvent } from "./log.ts";
import type { Sequence } from "./offset.ts";

export type HistoryDeps<T> = StreamAccess & {
  readonly semaphore: Semaphore;
  /** The last message that matches, 0 for none. */
  readonly lastMatch: (subjects: readonly string[]) => Promise<Sequence>;
  readonly decode: Decode<T>;
  readonly warn: Warn;
};

/** The most that one turn reads, which bounds what a paused reader holds. A single message always fits. */
const batchBytes = 1024 * 1024;
const largestBatch = 256;
const firstBatch = 64;

/** A batch that nobody consumes is dropped after this time, and read again when somebody does. */
const holdMs = 5_000;

/** The messages to read: both inclusive. */
export type MessageRange = { readonly first: Sequence; readonly last: Sequence; readonly subjects: readonly string[] };

/** See LogReader.history. Reads batch by batch, each in a turn of its own, so a paused reader blocks nobody. */
export async function* readHistory<T>(
  deps: HistoryDeps<T>,
  { first, last: end, subjects }: MessageRange,
  signal: AbortSignal,
): AsyncGenerator<T, void> {
  const { semaphore, lastMatch, decode, warn } = deps;
  const retry = backoff(50, 2_000);
  let reading: ConsumerProgress | undefined;
  let next = first;
  let size = firstBatch;
  try {
    while (next <= end && !signal.aborted) {
      let batch: Batch;
      let complete: boolean; // the log holds nothing further: the message at `end` may be gone
      const release = await semaphore.acquire(signal);
      if (release === undefined) return;
      try {
        reading ??= { consumer: await abortable(addConsumer(deps, next, subjects), signal), delivered: 0 };
        batch = await readBatch(deps, reading, size, signal);
        // Another reader waits for the turn; keeping this consumer would exceed the number of turns.
        if (semaphore.waiting > 0) reading = forget(deps, reading);
        const last = batch.messages.at(-1)?.seq ?? next - 1;
        complete = last >= end || (batch.drained && (await abortable(lastMatch(subjects), signal)) <= last);
      } catch (err) {
        reading = undefined;
        if (err instanceof ForgottenError || signal.aborted) continue;
        warn("reading history failed; trying again", { next, err });
        release();
        await delay(retry.next(), signal);
        continue;
      } finally {
        release();
      }
      if (batch.messages.length > 0) retry.reset();
      else if (batch.drained && !complete) await delay(retry.next(), signal); // a replica that lags behind the leader

      using held = hold(batch.messages);
      for (let message = held.next(); message !== undefined; message = held.next()) {
        if (message.seq > end || signal.aborted) return;
        const recorded = decode(message);
        if (recorded !== undefined) yield recorded;
        next = message.seq + 1;
      }
      if (held.dropped) reading = forget(deps, reading);
      else if (complete) return;
      // A slow reader would otherwise read the same messages again and again.
      size = held.dropped ? 1 : Math.min(largestBatch, size * 2);
    }
  } finally {
    forget(deps, reading);
  }
}

/** See LogReader.lastOfEach. */
export async function* readLasts(
  deps: Omit<HistoryDeps<RecordedEvent>, "lastMatch" | "warn">,
  subjects: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent, void> {
  const { semaphore, decode } = deps;
  let reading: ConsumerProgress | undefined;
  try {
    for (let isDrained = false; !isDrained && !signal.aborted; ) {
      const release = await semaphore.acquire(signal);
      if (release === undefined) return;
      let batch: Batch;
      try {
        reading ??= { consumer: await addConsumer(deps, "last of each subject", subjects), delivered: 0 };
        batch = await readBatch(deps, reading, largestBatch, signal);
      } finally {
        release();
      }
      isDrained = batch.drained;
      for (const message of batch.messages) {
        const recorded = decode(message);
        if (recorded !== undefined) yield recorded;
      }
    }
  } finally {
    forget(deps, reading);
  }
}

/** The server has forgotten the consumer because nobody pulled for too long. */
class ForgottenError extends Error {}

/** A consumer, and how many messages it has delivered to us. */
type ConsumerProgress = { readonly consumer: Consumer; delivered: number };

type Batch = { readonly messages: Delivered[]; readonly drained: boolean };

async function readBatch(
  deps: StreamAccess,
  reading: ConsumerProgress,
  size: number,
  signal: AbortSignal,
): Promise<Batch> {
  const batch = await pullOnce(deps, reading, { batch: size, max_bytes: batchBytes }, signal);
  if (batch.messages.length > 0 || batch.drained) return batch;
  return pullOnce(deps, reading, { batch: 1 }, signal); // the next message is larger than a batch
}

async function pullOnce(
  deps: StreamAccess,
  reading: ConsumerProgress,
  request: { readonly batch: number; readonly max_bytes?: number },
  signal: AbortSignal,
): Promise<Batch> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const messages: Delivered[] = [];
  const abort = () => reject(signal.reason);
  const late = setTimeout(() => reject(new Error("the log did not answer in time")), deps.timeoutMs);
  signal.addEventListener("abort", abort);
  using _pull = pull(deps, reading.consumer, { ...request, no_wait: true }, (answer) => {
    if (answer.type === "status") {
      if (answer.code === 404 || answer.code === 408) resolve(true);
      else if (answer.code === 503) reject(new ForgottenError());
      else if (answer.code === 409 && exceedsMaxBytes(answer.description)) resolve(false);
      else reject(new Error(`the log answered ${answer.code} ${answer.description}`));
    } else if (answer.message.deliverySeq !== ++reading.delivered) {
      reject(new Error("a message was lost on the way"));
    } else {
      late.refresh();
      messages.push(answer.message);
      if (messages.length === request.batch) resolve(false);
    }
  });
  try {
    return { drained: await promise, messages };
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", abort);
  }
}

function forget({ jsm, streamName }: StreamAccess, reading: ConsumerProgress | undefined): undefined {
  // The server would forget the consumer anyway, only later.
  if (reading !== undefined) jsm.consumers.delete(streamName, reading.consumer.name).catch(() => {});
}

/** Hands out messages one by one, and drops the rest when nobody has asked for a while. */
function hold(messages: Delivered[]) {
  let index = 0;
  let dropped = false;
  const timer = setTimeout(() => {
    dropped = index < messages.length;
    messages.length = 0; // in place: a suspended reader keeps the array
  }, holdMs).unref();
  return {
    next(): Delivered | undefined {
      timer.refresh();
      return messages[index++];
    },
    get dropped() {
      return dropped;
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
