import { abortable } from "../../sync/abortable.ts";
import { backoff, delay } from "../../sync/delay.ts";
import type { Semaphore } from "../../sync/semaphore.ts";
import { startTimer, stopTimer, timeoutSignal } from "../../sync/timers.ts";
import type { Shift } from "../live/shift.ts";
import { LogReplacedError } from "../log.ts";
import type { Sequence } from "../offset.ts";
import { addConsumer, type Consumer, type Delivered, exceedsMaxBytes, pull, type StreamAccess } from "./consumer.ts";
import type { Warn } from "./decode.ts";
import { hold } from "./hold.ts";

export type HistoryDeps<T> = StreamAccess & {
  readonly semaphore: Semaphore;
  /** The last message that matches, 0 for none. */
  readonly lastMatch: (subjects: readonly string[]) => Promise<Sequence>;
  /** The result of a message; undefined: none. */
  readonly read: (message: Delivered) => T | undefined;
  readonly warn: Warn;
  /** @throws LogReplacedError when the stream is another one than at the beginning */
  readonly checkSame: () => Promise<void>;
  /** Shared by all who read history. */
  readonly shift: Shift;
  /** The reading rejects when the log fails or is silent for so long. Undefined: it waits, and tries again. */
  readonly patienceMs?: number;
};

/** The most that one turn reads, which bounds what a paused reader holds. A single message always fits. */
const pullBytes = 1024 * 1024;
const largestPull = 1_000;
const firstPull = 64;

/** The messages to read: both inclusive. `subjects` filter by the subjects of messages. */
export type MessageRange = { readonly first: Sequence; readonly last: Sequence; readonly subjects: readonly string[] };

/** Reads pull by pull, each in its own turn, so a paused reader blocks no other. */
export async function* readHistory<T>(
  deps: HistoryDeps<T>,
  { first, last: end, subjects }: MessageRange,
  signal: AbortSignal,
): AsyncGenerator<T, void> {
  const { semaphore, lastMatch, read, warn, shift, patienceMs } = deps;
  const answered = <A>(asked: Promise<A>) =>
    abortable(asked, patienceMs === undefined ? signal : AbortSignal.any([signal, timeoutSignal(patienceMs)]));
  const retry = backoff(50, 2_000);
  let reading: ConsumerProgress | undefined;
  let hasBegun = false;
  let next = first;
  let size = firstPull;
  try {
    while (next <= end && !signal.aborted) {
      let pulled: Pulled;
      let complete: boolean; // the log holds nothing further: the message at `end` may be gone
      const release = await semaphore.acquire(signal);
      if (release === undefined) return;
      try {
        if (reading === undefined) {
          reading = { consumer: await answered(addConsumer(deps, next, subjects)), delivered: 0 };
          // The consumer before may have gone with its stream.
          if (hasBegun) await answered(deps.checkSame());
          hasBegun = true;
        }
        // No more than the range can hold: what comes after it would be read for nothing.
        pulled = await pullSome(deps, reading, Math.min(size, end - next + 1), signal);
        // Another reader waits for the turn; keeping this consumer would exceed the number of turns.
        if (semaphore.waiting > 0) reading = forget(deps, reading);
        const last = pulled.messages.at(-1)?.seq ?? next - 1;
        complete = last >= end || (pulled.drained && (await answered(lastMatch(subjects))) <= last);
      } catch (err) {
        reading = undefined;
        if (err instanceof LogReplacedError) throw err;
        if (err instanceof ForgottenError || signal.aborted) continue;
        if (patienceMs !== undefined) throw err;
        warn("reading history failed; trying again", { next, err });
        release();
        await delay(retry.next(), signal);
        continue;
      } finally {
        release();
      }
      if (pulled.messages.length > 0) retry.reset();
      else if (pulled.drained && !complete) await delay(retry.next(), signal); // a replica that lags behind the leader

      using held = hold(pulled.messages);
      for (let message = held.next(); message !== undefined; message = held.next()) {
        if (message.seq > end || signal.aborted) return;
        const given = read(message);
        if (given !== undefined) yield given;
        next = message.seq + 1;
        if (shift.isOver) await shift.next();
      }
      if (held.dropped) reading = forget(deps, reading);
      else if (complete) return;
      // A slow reader would otherwise read the same messages again and again.
      size = held.dropped ? 1 : Math.min(largestPull, size * 2);
    }
  } finally {
    forget(deps, reading);
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
        pulled = await pullSome(deps, reading, largestPull, signal);
      } finally {
        release();
      }
      isDrained = pulled.drained;
      for (const message of pulled.messages) {
        const given = read(message);
        if (given !== undefined) yield given;
      }
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
  size: number,
  signal: AbortSignal,
): Promise<Pulled> {
  const pulled = await pullOnce(deps, reading, { batch: size, max_bytes: pullBytes }, signal);
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
    stopTimer(late);
    signal.removeEventListener("abort", abort);
  }
}

function forget({ jsm, streamName }: StreamAccess, reading: ConsumerProgress | undefined): undefined {
  // The server would forget the consumer anyway, only later.
  if (reading !== undefined) jsm.consumers.delete(streamName, reading.consumer.name).catch(() => {});
}
