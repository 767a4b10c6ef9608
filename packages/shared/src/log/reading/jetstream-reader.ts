import type { StreamInfo } from "@nats-io/jetstream";
import type { Semaphore } from "../../sync/semaphore.ts";
import { bytesInMemory } from "../batch/channel-events.ts";
import type { FormerEpoch } from "../epoch.ts";
import type { ErasedSessions } from "../erasures/erased-sessions.ts";
import { followLog } from "../live/follow.ts";
import type { RingLimits } from "../live/ring.ts";
import { SharedEvent } from "../live/shared-event.ts";
import { SharedTail } from "../live/shared-tail.ts";
import { Shift } from "../live/shift.ts";
import { type Gathering, openTail } from "../live/tail.ts";
import type { HeldBatches, HeldEvent, LogReader, LogSurvey, PageReader, RecordedEvent, StoredMessage } from "../log.ts";
import { beyondAll, endOf, firstMessageAfter, logStart, type Offset, type Sequence, sequenceOf } from "../offset.ts";
import { pageBytes, pagePull, type ReadPage } from "../shared-history/history-page.ts";
import { SharedHistory } from "../shared-history/shared-history.ts";
import { subjectMatcher } from "../subject-match.ts";
import { channelsOf, messageFilters } from "../subjects.ts";
import { cursorIn, writerIn } from "../writing/jetstream-writer.ts";
import type { Delivered, StreamAccess } from "./consumer.ts";
import { type EventSelection, messageReader, type ReadMessage, type Warn } from "./decode.ts";
import type { Stored } from "./direct-get.ts";
import { ElectionReader, type ElectionReaderDeps } from "./election-reader.ts";
import { type HistoryDeps, type MessageRange, readHistory, readLasts, readStretch } from "./history.ts";
import { Leader, orNotReady } from "./leader.ts";
import { lossesOf, passedLosses, retainedBy } from "./losses.ts";
import { besideEachOther, type ReadOneMessage, type ReadRuns, readEventBatches, readEvents } from "./read-events.ts";
import { Replicas } from "./replicas.ts";

export type ReaderDeps = StreamAccess & {
  readonly epoch: string;
  readonly formerEpochs: readonly FormerEpoch[];
  readonly warn: Warn;
  readonly historyReaders: Semaphore;
  /** What the leader said of the stream when it was opened. */
  readonly info: StreamInfo;
  readonly limits?: RingLimits;
  readonly gathering?: Gathering | undefined;
  /** What is left out of everything but `stored`. */
  readonly erased?: ErasedSessions | undefined;
};

export type JetstreamReader = LogReader &
  LogSurvey & {
    /** Like `history`, but the messages themselves, by their own subjects: those that are there, without an error for others. */
    stored(range: MessageRange, signal: AbortSignal): AsyncGenerator<StoredMessage, void>;
    close(): Promise<void>;
  };

export function jetstreamReader(deps: ReaderDeps): JetstreamReader {
  const { epoch, formerEpochs } = deps;
  const warn = rateLimited(deps.warn);
  const readMessage = messageReader(deps.warn, deps.erased);
  const historySemaphore = deps.historyReaders;
  /** The last message that was read because its offset was known from elsewhere. */
  let lastFound: Sequence = 0;

  const leader = new Leader(deps, deps.info);
  const bounds = () => leader.bounds();
  const lastMatch: LogReader["lastMatch"] = async (subjects) =>
    endOf(await leader.lastMessage(messageFilters(subjects)));

  const shift = new Shift();
  const checkSame = () => leader.checkSame();
  const losses = lossesOf(leader, epoch);
  const assertRetained = retainedBy(losses);
  const historyDeps = {
    ...deps,
    warn,
    checkSame,
    losses,
    shift,
    semaphore: historySemaphore,
    lastMatch: (subjects: readonly string[]) => leader.lastMessage(subjects),
  };

  const consumerHistory = eventHistory(historyDeps, readMessage);
  const historyBatches: LogReader["historyBatches"] = (from, untilOffset, signal) =>
    consumerHistory(from, untilOffset, { signal });

  const history = new SharedHistory({ historyBatches, readPage: pageOfHistory(historyDeps, readMessage), shift });

  const tail = new SharedTail(() =>
    openTail({ ...deps, warn, readMessage, forget: (session, erasedAt) => history.forget(session, erasedAt) }),
  );
  const followBatches: LogReader["followBatches"] = (from, options) =>
    followLog({ tail, bounds, lastMatch, history, assertRetained }, from, options);

  const leaderStoredAt = (sequence: Sequence) => storedAt(deps, leader, sequence);
  const readOne: ReadOneMessage = async (sequence, isIncluded) => {
    const message = await leaderStoredAt(sequence);
    lastFound = Math.max(lastFound, message?.seq ?? 0);
    return message === null ? [] : readMessage(message, { at: isIncluded });
  };

  const inTurn = readInTurn(historySemaphore, readOne, checkSame);

  const election = new ElectionReader({
    leader,
    replicas: new Replicas(deps),
    consumerHistory,
    leaderStoredAt,
    readMessage,
    selectionOf,
    warn,
    shift,
    semaphore: historySemaphore,
    lastSeen: () => Math.max(leader.lastSeen, lastFound, tail.lastSeen),
  });

  return {
    epoch,
    formerEpochs,
    bounds,
    pages: pageReader({ epoch, formerEpochs, now: () => leader.now(), assertRetained }, election, readMessage),
    now: () => leader.now(),
    lastMatch,
    assertRetained,
    historyBatches,
    history: (from, untilOffset, signal) => oneByOne(historyBatches(from, untilOffset, signal), signal),
    stored: (range, signal) =>
      flat(readHistory({ ...historyDeps, losses: passedLosses(leader), read: storedOf }, range, signal)),
    lastOfEach(subjects, signal) {
      const read = (message: Delivered) => lastIn(readMessage(message));
      return readLasts({ ...deps, read, semaphore: historySemaphore }, messageFilters(subjects), signal);
    },

    read: (offsets, signal) =>
      readEvents(offsets, (sequence, isIncluded) => orNotReady(readOne(sequence, isIncluded)), signal),

    async *readBatches(offsets, signal) {
      for await (const events of readEventBatches(offsets, inTurn(signal), signal)) {
        yield events;
        if (shift.isOver) await shift.next();
      }
    },
    firstSince: (time) => leader.firstSince(time),
    followBatches,
    follow: (from, options) => oneByOne(followBatches(from, options), options.signal),

    close: () => tail[Symbol.asyncDispose](),
  };
}

/** Reads runs in one turn of those who read history. */
function readInTurn(semaphore: Semaphore, readOne: ReadOneMessage, checkSame: () => Promise<void>) {
  return (signal: AbortSignal): ReadRuns =>
    async (runs) => {
      const release = await semaphore.acquire(signal);
      if (release === undefined) return [];
      try {
        const read = await orNotReady(besideEachOther(readOne)(runs));
        // Checked after reading, so that nothing of a replaced stream is returned.
        await orNotReady(checkSame());
        return read;
      } finally {
        release();
      }
    };
}

/** Reads the events of a range from a consumer. */
function eventHistory(
  deps: Omit<HistoryDeps<never>, "read">,
  readMessage: ReadMessage,
): ElectionReaderDeps["consumerHistory"] {
  return ({ afterOffset, subjects }, untilOffset, { signal, maxSilenceMs }) => {
    const last = sequenceOf(untilOffset);
    const range = { first: firstMessageAfter(afterOffset), last, subjects: messageFilters(subjects) };
    const selection = selectionOf(subjects, afterOffset, untilOffset);
    const read = (message: Delivered) => readMessage(message, selection);
    const timeouts = maxSilenceMs === undefined ? {} : { maxSilenceMs, timeoutMs: maxSilenceMs };
    return readHistory({ ...deps, ...timeouts, read }, range, signal);
  };
}

/** Reads a page for all followers. */
function pageOfHistory(deps: Omit<HistoryDeps<never>, "read">, readMessage: ReadMessage): ReadPage {
  return async ({ first, last, subjects }, signal) => {
    const range = { first, last, subjects: messageFilters(subjects) };
    const stretch = await readStretch(deps, range, pagePull, signal);
    if (stretch === undefined) return undefined;
    const selection = selectionOf(subjects, logStart, beyondAll);
    const events: SharedEvent[] = [];
    let bytes = 0;
    for (const message of stretch.messages) {
      bytes += bytesInMemory(message.data);
      for (const event of readMessage(message, selection)) events.push(new SharedEvent(message, event));
      if (bytes >= pageBytes && message !== stretch.messages.at(-1)) return { events, upTo: message.seq, bytes };
      if (deps.shift.isOver) await deps.shift.next();
    }
    return { events, upTo: stretch.upTo, bytes };
  };
}

/** Which events a reader gets: their messages hold others too. */
function selectionOf(subjects: readonly string[], after: Offset, until: Offset): EventSelection {
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
  const channels = channelsOf(subjects);
  return { at, of: isOf, ...(channels && { ofChannel: (channel) => channels.has(channel) }) };
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

function lastIn(events: readonly HeldEvent[]): readonly RecordedEvent[] {
  return events.slice(-1).flatMap((held) => held.decode() ?? []);
}

async function* flat<T>(batches: AsyncIterable<readonly T[]>): AsyncGenerator<T, void> {
  for await (const batch of batches) yield* batch;
}

function storedOf(message: Delivered): readonly StoredMessage[] {
  const { headers, expiresAtMs, seq, recordedAtMs, subject, data } = message;
  const expires = expiresAtMs !== undefined;
  const [writer, cursor] = [writerIn(headers), cursorIn(headers)];
  return [{ seq, recordedAtMs, subject, data, writer, cursor, expires, expiresAtMs }];
}

async function storedAt({ jsm, streamName }: StreamAccess, leader: Leader, seq: Sequence): Promise<Stored | null> {
  const found = await jsm.direct.getMessage(streamName, { seq });
  // A replica that lags behind the leader may not have it yet.
  if (found === null) return leader.message(seq);
  return { seq: found.seq, recordedAtMs: found.time.getTime(), subject: found.subject, data: found.data };
}

function pageReader(
  parts: Pick<PageReader, "epoch" | "formerEpochs" | "now" | "assertRetained">,
  election: ElectionReader,
  readMessage: ReadMessage,
): PageReader {
  const readOne: ReadOneMessage = async (sequence, isIncluded) => {
    const message = await election.storedAt(sequence);
    return message === null ? [] : readMessage(message, { at: isIncluded });
  };
  return {
    ...parts,
    bounds: () => election.bounds(),
    firstSince: (time) => election.firstSince(time),
    read: (offsets, signal) =>
      readEvents(offsets, (sequence, isIncluded) => orNotReady(readOne(sequence, isIncluded)), signal),
    history: (from, untilOffset, signal) => oneByOne(election.historyBatches(from, untilOffset, signal), signal),
  };
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
