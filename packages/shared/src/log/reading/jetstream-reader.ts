import { Semaphore } from "../../sync/semaphore.ts";
import { layoutOf, type MovedFrom } from "../batch.ts";
import type { FormerEpoch } from "../epoch.ts";
import { cursorIn, writerIn } from "../jetstream-writer.ts";
import { followLog } from "../live/follow.ts";
import type { RingLimits } from "../live/ring.ts";
import { Shift } from "../live/shift.ts";
import { openTail, type Tail } from "../live/tail.ts";
import type { HeldBatches, LogReader, LogSurvey, RecordedEvent, StoredMessage } from "../log.ts";
import { endOf, firstMessageAfter, type Offset, type Sequence, sequenceOf } from "../offset.ts";
import { subjectMatcher } from "../subject-match.ts";
import { messageFilters } from "../subjects.ts";
import type { Delivered, StreamAccess } from "./consumer.ts";
import { messageReader, type Wanted, type Warn } from "./decode.ts";
import { type MessageRange, readHistory, readLasts } from "./history.ts";
import { Leader, orNotReady } from "./leader.ts";
import { besideEachOther, type ReadOneMessage, type ReadRuns, readEventBatches, readEvents } from "./read-events.ts";

export type ReaderDeps = StreamAccess & {
  readonly epoch: string;
  readonly formerEpochs: readonly FormerEpoch[];
  readonly warn: Warn;
  readonly historyReaders: number;
  readonly limits?: RingLimits;
};

export type JetstreamReader = LogReader &
  LogSurvey & {
    /** Like `history`, but the messages themselves, by their own subjects. Omits expired messages. */
    stored(range: MessageRange, signal: AbortSignal): AsyncGenerator<StoredMessage, void>;
    close(): Promise<void>;
  };

export function jetstreamReader(deps: ReaderDeps): JetstreamReader {
  const { epoch, formerEpochs } = deps;
  const warn = rateLimited(deps.warn);
  const readMessage = messageReader(deps.warn);
  const historySemaphore = new Semaphore(deps.historyReaders);
  let tail: Tail | undefined;

  const leader = new Leader(deps);
  const bounds = () => leader.bounds();
  const lastMatch: LogReader["lastMatch"] = async (subjects) =>
    endOf(await leader.lastMessage(messageFilters(subjects)));

  const shift = new Shift();
  const checkSame = () => leader.checkSame(epoch);
  const historyDeps = {
    ...{ ...deps, warn, checkSame, shift },
    ...{ semaphore: historySemaphore, lastMatch: (subjects: readonly string[]) => leader.lastMessage(subjects) },
  };

  const historyBatches: LogReader["historyBatches"] = ({ afterOffset, subjects }, untilOffset, signal) => {
    const last = sequenceOf(untilOffset);
    const range = { first: firstMessageAfter(afterOffset), last, subjects: messageFilters(subjects) };
    const wanted = wantedBy(subjects, afterOffset, untilOffset);
    const read = (message: Delivered) => {
      const events = readMessage(message, wanted);
      return events.length === 0 ? undefined : events;
    };
    return readHistory({ ...historyDeps, read }, range, signal);
  };

  const followBatches: LogReader["followBatches"] = (from, options) => {
    tail ??= openTail({ ...deps, warn, readMessage });
    return followLog({ tail, bounds, lastMatch, historyBatches }, from, options);
  };

  const readOne: ReadOneMessage = async (sequence, isWanted) => {
    const message = await storedAt(deps, sequence);
    return message === null ? [] : readMessage(message, { at: isWanted });
  };

  const readTogether = besideEachOther(readOne);
  const readBatches: LogReader["readBatches"] = async function* (offsets, signal) {
    const inTurn: ReadRuns = async (runs) => {
      const release = await historySemaphore.acquire(signal);
      if (release === undefined) return [];
      try {
        const read = await orNotReady(readTogether(runs));
        // Afterwards: nothing is given of a log that took this one's place.
        await orNotReady(checkSame());
        return read;
      } finally {
        release();
      }
    };
    for await (const events of readEventBatches(offsets, inTurn, signal)) {
      yield events;
      if (shift.isOver) await shift.next();
    }
  };

  return {
    epoch,
    formerEpochs,
    bounds,
    now: () => leader.now(),
    lastMatch,
    historyBatches,
    history: (from, untilOffset, signal) => oneByOne(historyBatches(from, untilOffset, signal), signal),
    stored: (range, signal) => readHistory({ ...historyDeps, read: storedOf }, range, signal),

    lastOfEach(subjects, signal) {
      const read = (message: Delivered) => readMessage(message).at(-1)?.decode();
      return readLasts({ ...deps, read, semaphore: historySemaphore }, messageFilters(subjects), signal);
    },

    read: (offsets, signal) =>
      readEvents(offsets, (sequence, isWanted) => orNotReady(readOne(sequence, isWanted)), signal),

    readBatches,
    firstSince: (time) => leader.firstSince(time),
    followBatches,
    follow: (from, options) => oneByOne(followBatches(from, options), options.signal),

    close: async () => tail?.[Symbol.asyncDispose](),
  };
}

/** Which events a reader gets: their messages hold others too. */
function wantedBy(subjects: readonly string[], after: Offset, until: Offset): Wanted {
  const at = (offset: Offset) => offset > after && offset <= until;
  if (subjects.length === 0) return { at };
  const matches = subjectMatcher(subjects);
  const known = new Map<string, boolean>();
  // The events of a log share few subjects.
  const isOf = (subject: string): boolean => {
    let isMatch = known.get(subject);
    if (isMatch === undefined) {
      isMatch = matches(subject.split("."));
      known.set(subject, isMatch);
    }
    return isMatch;
  };
  return { at, of: isOf };
}

/** Decodes one event after the other, as they are asked for. */
async function* oneByOne(batches: HeldBatches, signal: AbortSignal): AsyncGenerator<RecordedEvent, void> {
  for await (const batch of batches) {
    for (const held of batch) {
      const recorded = held.decode();
      if (recorded !== undefined) yield recorded;
      if (signal.aborted) return;
    }
  }
}

function storedOf({ headers, expiresAtMs, seq, recordedAtMs, subject, data }: Delivered): StoredMessage {
  const moved = movedFrom(data);
  return {
    ...{ seq, recordedAtMs: moved?.recordedAtMs ?? recordedAtMs, subject, data, moved },
    ...{ writer: writerIn(headers), cursor: cursorIn(headers), expires: expiresAtMs !== undefined, expiresAtMs },
  };
}

/** Undefined also for something else than a batch of events. */
function movedFrom(data: Uint8Array): MovedFrom | undefined {
  try {
    return layoutOf(data).moved;
  } catch {
    return undefined;
  }
}

async function storedAt({ jsm, streamName }: StreamAccess, seq: Sequence) {
  const found =
    (await jsm.direct.getMessage(streamName, { seq })) ??
    // A replica that lags behind the leader may not have it yet.
    (await jsm.streams.getMessage(streamName, { seq }));
  return found && { seq: found.seq, recordedAtMs: found.time.getTime(), subject: found.subject, data: found.data };
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
