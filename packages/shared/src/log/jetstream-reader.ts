import type { MsgRequest } from "@nats-io/jetstream";
import { TapedeckError } from "../errors/errors.ts";
import { type Semaphore, semaphore } from "../sync/semaphore.ts";
import type { Delivered, StreamAccess } from "./consumer.ts";
import { decoder, type Warn } from "./decode.ts";
import type { FormerEpoch } from "./epoch.ts";
import { followLog } from "./follow.ts";
import { type MessageRange, readHistory, readLasts } from "./history.ts";
import { cursorIn } from "./jetstream-writer.ts";
import type { LogReader, LogSurvey, StoredMessage } from "./log.ts";
import { endOf, firstMessageAfter, offsetOf, type Sequence, sequenceOf } from "./offset.ts";
import { readEvents } from "./read-events.ts";
import type { RingLimits } from "./ring.ts";
import { withoutCovered } from "./subject-match.ts";
import { everySubject } from "./subjects.ts";
import { openTail, type Tail } from "./tail.ts";

export type ReaderDeps = StreamAccess & {
  readonly epoch: string;
  readonly formerEpochs: readonly FormerEpoch[];
  readonly warn: Warn;
  readonly historyReaders: number;
  readonly limits?: RingLimits;
};

export type JetstreamReader = LogReader &
  LogSurvey & {
    /** Like `history`, but the messages themselves. Omits unreadable and expired messages. */
    stored(range: MessageRange, signal: AbortSignal): AsyncGenerator<StoredMessage, void>;
    close(): Promise<void>;
  };

export function jetstreamReader(deps: ReaderDeps): JetstreamReader {
  const { jsm, streamName, epoch, formerEpochs } = deps;
  const warn = rateLimited(deps.warn);
  const decode = decoder(deps.warn);
  const historySemaphore: Semaphore = semaphore(deps.historyReaders);
  let tail: Tail | undefined;

  const bounds: LogReader["bounds"] = async () => {
    const { state } = await orNotReady(jsm.streams.info(streamName));
    return { firstOffset: offsetOf(Math.max(1, state.first_seq)), lastOffset: endOf(state.last_seq) };
  };

  const now: LogReader["now"] = async () => {
    const info = await orNotReady(jsm.streams.info(streamName));
    // The server sends `ts`; only the client's type lacks it.
    const { ts } = info as typeof info & { readonly ts?: string };
    return { at: ts === undefined ? new Date() : new Date(ts), lastOffset: endOf(info.state.last_seq) };
  };

  const lastMessage = async (subjects: readonly string[]): Promise<Sequence> => {
    // For all subjects too: the message of the last sequence may be gone, and ">" then finds nothing (2.15.1).
    const lasts = withoutCovered(subjects.length === 0 ? [everySubject] : subjects).map((subject) =>
      jsm.streams.getMessage(streamName, { last_by_subj: subject }),
    );
    return Math.max(...(await orNotReady(Promise.all(lasts))).map((message) => message?.seq ?? 0));
  };

  const lastMatch: LogReader["lastMatch"] = async (subjects) => endOf(await lastMessage(subjects));

  const historyDeps = { ...deps, warn, semaphore: historySemaphore, lastMatch: lastMessage };

  const history: LogReader["history"] = ({ afterOffset, subjects }, untilOffset, signal) => {
    const range = { first: firstMessageAfter(afterOffset), last: sequenceOf(untilOffset), subjects };
    return readHistory({ ...historyDeps, decode }, range, signal);
  };

  const eventsIn = async (sequence: Sequence) => {
    const message = await storedAt(deps, sequence);
    const recorded = message === null ? undefined : decode(message);
    return recorded === undefined ? [] : [recorded];
  };

  return {
    epoch,
    formerEpochs,
    bounds,
    now,
    lastMatch,
    history,
    stored: (range, signal) => readHistory({ ...historyDeps, decode: storedOf }, range, signal),

    lastOfEach: (subjects, signal) => readLasts({ ...deps, decode, semaphore: historySemaphore }, subjects, signal),

    read: (offsets, signal) => readEvents(offsets, (sequence) => orNotReady(eventsIn(sequence)), signal),

    async firstSince(time) {
      // The leader also takes a start time here; only the client's type lacks it.
      const ms = Math.min(Math.max(time.getTime(), 0), lastMoment);
      const query = { start_time: new Date(ms).toISOString() } as unknown as MsgRequest;
      const message = await orNotReady(jsm.streams.getMessage(streamName, query));
      return message === null ? undefined : offsetOf(message.seq);
    },

    follow(from, options) {
      tail ??= openTail({ ...deps, warn, decode });
      return followLog({ tail, bounds, lastMatch, history }, from, options);
    },

    close: async () => tail?.[Symbol.asyncDispose](),
  };
}

function storedOf({ headers, expiresAtMs, seq, recordedAtMs, subject, data }: Delivered): StoredMessage {
  return { seq, recordedAtMs, subject, data, cursor: cursorIn(headers), expires: expiresAtMs !== undefined };
}

async function storedAt({ jsm, streamName }: StreamAccess, seq: Sequence) {
  const found =
    (await jsm.direct.getMessage(streamName, { seq })) ??
    // A replica that lags behind the leader may not have it yet.
    (await jsm.streams.getMessage(streamName, { seq }));
  return found && { seq: found.seq, recordedAtMs: found.time.getTime(), subject: found.subject, data: found.data };
}

/** The server counts nanoseconds since 1970 in 64 bits, which overflow in 2262: a later time would precede everything. */
const lastMoment = Date.UTC(2262, 0);

/** Turns a failure of the log into the error that clients get. */
function orNotReady<T>(asked: Promise<T>): Promise<T> {
  return asked.catch((cause: unknown) => {
    const isDeleted = cause instanceof Error && cause.name === "StreamNotFoundError";
    const text = isDeleted
      ? "the log was deleted: start Tapedeck again to begin a new one"
      : "the log can't be reached: try again in a moment";
    throw new TapedeckError("not_ready", text, {}, { cause });
  });
}

/** Limits a warning that many readers repeat: an outage of the log concerns all of them at once. */
function rateLimited(warn: Warn): Warn {
  const lastWarned = new Map<string, number>();
  return (message, fields) => {
    const now = performance.now();
    if (now - (lastWarned.get(message) ?? Number.NEGATIVE_INFINITY) < 5_000) return;
    lastWarned.set(message, now);
    warn(message, fields);
  };
}
