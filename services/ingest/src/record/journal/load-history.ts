import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { Cursor, LastOfSource, LogReader, LogWriter, RecordedEvent } from "@tapedeck/shared/log/log";
import {
  endOf,
  justBefore,
  logStart,
  maxEventsBetween,
  messagesBefore,
  type Offset,
  type Sequence,
} from "@tapedeck/shared/log/offset";
import { channelFilter, sourceFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import { decodeTime } from "ulid";
import { isAhead, type LogEnds } from "./ends.ts";
import { SourceHistory } from "./source-history.ts";

/** The parts of the log's reading half that recording needs. */
export type LogHistoryReader = Pick<LogReader, "bounds" | "lastMatch" | "firstSince" | "history">;

/** How far sources have come, as kept outside the log. */
export type SourceEnds = Pick<LogEnds, "endOf" | "reached">;

/** The log as recording uses it. */
export type RecordingLog = {
  readonly writer: LogWriter;
  readonly reader: LogHistoryReader;
  readonly ends?: SourceEnds | undefined;
};

export type LoadedHistory = {
  readonly history: SourceHistory;
  /** Sequence of the source's last message in the log: what is written next comes after it. */
  readonly lastSeq: Sequence;
  /** The cursor of the source's last message, even if the log has lost it; undefined for a source that never had a message. */
  readonly cursor: Cursor | undefined;
  /** The last message never expires. */
  readonly lastStays: boolean;
  /** At most this many events of the source came after that cursor and have expired. */
  readonly expired: number;
  /** The writer of the last message in the log; undefined if there is none. */
  readonly lastWriter: string | undefined;
};

/** A history as of the source's message at `lastSeq`. */
export type RememberedHistory = {
  readonly history: SourceHistory;
  readonly lastSeq: Sequence;
  readonly lastWriter: string | undefined;
  readonly lastStays: boolean;
  /** When that message was the last one, by our clock. */
  readonly at: number;
};

export type LoadHistoryOptions = {
  readonly log: RecordingLog;
  readonly source: SourceName;
  readonly signal: AbortSignal;
  /** Sessions may continue however long ago they began (a rkt host may return to an earlier data directory). */
  readonly allSessions: boolean;
  /** A history of all sessions. It is used instead of reading if nothing was written since. */
  readonly remembered?: RememberedHistory | undefined;
};

/**
 * Items pushed again were recorded while their last acknowledgement was on its way, which is not longer ago than this.
 */
const reachMs = 30 * 24 * 3_600_000;

/** Reads what the log has about a source. Waits while the log is unavailable. Rejects when the signal aborts. */
export async function loadHistory(options: LoadHistoryOptions): Promise<LoadedHistory> {
  const { log, source, signal, remembered } = options;
  const [last, end] = await Promise.all([
    retrying(() => log.writer.lastOf(source), signal),
    retrying(async () => log.ends?.endOf(source), signal),
  ]);
  const isLost = end !== undefined && (last === undefined || isAhead(end.cursor, last.mark.cursor));
  const cursor = isLost ? end.cursor : last?.mark.cursor;
  const loaded = { lastSeq: last?.seq ?? 0, cursor, lastWriter: last?.mark.writer };
  if (cursor === undefined) return { ...loaded, history: new SourceHistory(), lastStays: true, expired: 0 };
  if (remembered !== undefined && !isLost && isCurrent(remembered, last) && isRecent(cursor, remembered.at)) {
    return { ...loaded, history: remembered.history, lastStays: remembered.lastStays, expired: 0 };
  }
  const { lastOffset: logEnd } = await retrying(() => log.reader.bounds(), signal);
  // If the last message can't be read, the messages before it can.
  const until = last === undefined ? logEnd : endOf(last.seq);
  const { history, lastEvent } = await readHistory(options, cursor, until);
  const lastStays = lastEvent?.event.channel === ownChannel;
  if (isRecent(cursor, lastEvent?.recordedAt.getTime() ?? 0)) return { ...loaded, history, lastStays, expired: 0 };
  return {
    ...loaded,
    history,
    lastStays,
    expired: maxEventsBetween(isLost ? endOf(end.seq) : until, logEnd),
  };
}

function isCurrent({ lastSeq, lastWriter }: RememberedHistory, last: LastOfSource | undefined): boolean {
  return lastSeq === (last?.seq ?? 0) && lastWriter === last?.mark.writer;
}

/** Uses half of the text's life, because clocks may disagree. A live recorder lets no text be the last for longer. */
function isRecent({ textTtl }: Cursor, at: number): boolean {
  return textTtl === undefined || Date.now() - at < (textTtl * 1_000) / 2;
}

type ReadHistory = { readonly history: SourceHistory; readonly lastEvent: RecordedEvent | undefined };

async function readHistory(options: LoadHistoryOptions, { session }: Cursor, until: Offset): Promise<ReadHistory> {
  const { log, signal, allSessions } = options;
  const since = Math.min(Date.now(), session === "" ? Number.POSITIVE_INFINITY : decodeTime(session)) - reachMs;
  const first = await retrying(() => log.reader.firstSince(new Date(Math.max(0, since))), signal);
  const recent = await readOwnEvents(options, allSessions || first === undefined ? logStart : justBefore(first), until);
  // The log's clock and ours may disagree. Everything is read then.
  const isWhole = recent.session?.id === session || session === "";
  const history = isWhole ? recent : await readOwnEvents(options, logStart, until);
  const lastEvent = await readLastEvent(options, until);
  if (lastEvent !== undefined && lastEvent.event.channel !== ownChannel)
    history.observe(lastEvent.event, lastEvent.offset);
  return { history, lastEvent };
}

async function readOwnEvents(
  { log, source, signal }: LoadHistoryOptions,
  afterOffset: Offset,
  until: Offset,
): Promise<SourceHistory> {
  const history = new SourceHistory();
  const yieldIfDue = yieldToEventLoop();
  const subjects = [channelFilter(source, ownChannel)];
  for await (const { event, offset } of log.reader.history({ afterOffset, subjects }, until, signal)) {
    history.observe(event, offset);
    await yieldIfDue();
  }
  signal.throwIfAborted();
  return history;
}

async function readLastEvent(
  { log, source, signal }: LoadHistoryOptions,
  until: Offset,
): Promise<RecordedEvent | undefined> {
  let last: RecordedEvent | undefined;
  const subjects = [sourceFilter(source)];
  const from = { afterOffset: messagesBefore(until, 1), subjects };
  for await (const recorded of log.reader.history(from, until, signal)) last = recorded;
  signal.throwIfAborted();
  return last;
}

/** Waits while the log is unavailable. Rejects when the signal aborts. */
async function retrying<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const delays = backoff(50, 2_000);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await ask();
    } catch {
      await delay(delays.next(), signal);
    }
  }
}
