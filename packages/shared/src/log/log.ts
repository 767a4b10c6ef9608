import type { Event } from "../events/codec.ts";
import type { SourceName } from "../source.ts";
import type { FormerEpoch } from "./epoch.ts";
import type { Offset, Sequence } from "./offset.ts";
import { mayShare } from "./subjects.ts";

/** An event as read from the log. */
export type RecordedEvent = {
  /** With the log's epoch it is the position. */
  readonly offset: Offset;
  /** When the log stored its message. */
  readonly recordedAt: Date;
  /** The event's; its message has a wider one. */
  readonly subject: string;
  readonly event: Event;
};

/** An event as a message of the log holds it: decoded only when more than its bytes is needed. */
export type HeldEvent = {
  readonly offset: Offset;
  readonly subject: string;
  /** Undefined when it must not be read any more: its session was erased, or it has expired. */
  readonly bytes: Uint8Array | undefined;
  /** All who follow the log get this same object, so what is made of it can be kept with it. */
  readonly isShared: boolean;
  /** Undefined when it can't be decoded, or must not be read any more. */
  decode(): RecordedEvent | undefined;
};

/**
 * The mark that the writer keeps with every message, so that the log itself is the checkpoint. The cursor is that of
 * its last event.
 */
export type WriterMark = {
  /** ULID of the writing ingest instance. */
  readonly writer: string;
  readonly cursor: Cursor;
};

/** The source's session and the last ordinal of every channel, the carrying event included. */
export type Cursor = {
  /** Empty before the first session. */
  readonly session: string;
  readonly ordinals: Readonly<Record<string, number>>;
  /** Last frame ordinal by channel. */
  readonly frames: Readonly<Record<string, number>>;
  /** Channels of the present connection that are past the repeat which a connection may begin with. */
  readonly settled?: readonly string[];
  /**
   * For each polled channel of the present connection, the index of the tap's item that the last recorded observation came
   * with. What the tap pushes again from before that item is recorded already.
   */
  readonly items?: Readonly<Record<string, number>>;
  /** After how many seconds text goes that is written with this event or between it and the next that stays; absent: never. */
  readonly textTtl?: number;
  /** How many events of the source were written to stay, the carrying one included; absent if they are not counted. */
  readonly kept?: number;
  /** How many events of each channel of the session were written to go with `textTtl`; absent without it. */
  readonly texts?: Readonly<Record<string, number>>;
  /** How many ordinals of each channel of the session were not used for an event; absent: none. */
  readonly unused?: Readonly<Record<string, number>>;
};

/** A source's last message, read from the stream's leader. */
export type LastOfSource = { readonly seq: Sequence; readonly mark: WriterMark };

/** An event to be written. */
export type NewEvent = {
  /** The subject of a message that holds this event alone; see messageSubject. */
  readonly subject: string;
  /** Empty for an event about the source as a whole. */
  readonly session: string;
  readonly event: Uint8Array;
  readonly cursor: Cursor;
  /** The log drops the message after this time (whole seconds, rounded up); absent: it stays. */
  readonly ttlSeconds?: number;
};

/** Whether two events can be in one message: it has one session and one time to live. */
export function fitTogether(one: NewEvent, other: NewEvent): boolean {
  return mayShare(one.subject, other.subject) && one.session === other.session && one.ttlSeconds === other.ttlSeconds;
}

/**
 * How a publish ended. Acknowledged: it is on disk. Wrong sequence: something of the source came after the expected
 * message, maybe this very publish from before. Unknown: timeout or disconnect, it may or may not be in the log, and may
 * still land. Refused: not in the log, for a reason that has nothing to do with the sequence. After wrong-sequence and
 * unknown, ask `lastOf` before continuing.
 */
export type PublishOutcome =
  | { readonly outcome: "acknowledged"; readonly seq: Sequence }
  | { readonly outcome: "wrong-sequence" }
  | { readonly outcome: "unknown"; readonly cause: unknown }
  | { readonly outcome: "refused"; readonly cause: unknown };

/** The writing half of the log: one source, one publish in flight at a time. */
export type LogWriter = {
  /** From the stream's leader. Rejects when it can't be asked. */
  lastOf(source: SourceName): Promise<LastOfSource | undefined>;
  /**
   * Publishes one message with these events, which fit together: at most 1,024, and 7.9 MiB. The same events make the same
   * message. `expectedLastSeq` is the sequence of the source's last message, 0 when it has none.
   * @throws RangeError when the events don't make a message; nothing was published then
   */
  publish(
    source: SourceName,
    writer: string,
    events: readonly NewEvent[],
    expectedLastSeq: Sequence,
  ): Promise<PublishOutcome>;
};

/** A message as the log stores it, for checks of the log itself. */
export type StoredMessage = {
  readonly seq: Sequence;
  /** The same time as RecordedEvent.recordedAt. */
  readonly recordedAtMs: number;
  readonly subject: string;
  /** Undefined if another program wrote the message. */
  readonly writer: string | undefined;
  readonly cursor: Cursor | undefined;
  /** The log will drop it after a time. */
  readonly expires: boolean;
  /** When, by the clock of the log; undefined: never. */
  readonly expiresAtMs: number | undefined;
  readonly data: Uint8Array;
};

/** The offsets are inclusive. `messages`: how many are between them; erased ones have left their offsets. */
export type LogBounds = {
  readonly firstOffset: Offset;
  readonly lastOffset: Offset;
  readonly messages: number;
  readonly bytes: number;
  /** The log may be longer: while no server leads it, this is the end that a replica has. */
  readonly mayBeBehind?: boolean;
};

/** Where a read begins and what it is limited to. `subjects` filter by the subjects of events; empty: everything. */
export type ReadFrom = { readonly afterOffset: Offset; readonly subjects: readonly string[] };

/**
 * The reading half of the log. Single questions (bounds, now, lastMatch, firstSince) reject with TapedeckError
 * not_ready when the log can't be reached; streams (history, follow) wait and continue.
 */
export type LogReader = {
  readonly epoch: string;
  /** The epochs before it was restored; see belongsToLog. */
  readonly formerEpochs: readonly FormerEpoch[];
  /**
   * The first kept event (of message 1 on a log that never dropped anything), and the end of the last message (of message
   * 0 on an empty log), from the stream's leader. When all was dropped, first follows last.
   * @throws LogReplacedError when the stream is another one
   */
  bounds(): Promise<LogBounds>;
  /** The leader's clock, by which events are recorded, and the end of the log at that moment. */
  now(): Promise<{ readonly at: Date; readonly lastOffset: Offset }>;
  /**
   * Nothing after it matches any of the subjects: the end of the last message that may hold a match, from the leader; the
   * log's start when none does.
   */
  lastMatch(subjects: readonly string[]): Promise<Offset>;
  /** The events at these offsets, in the given order, without those that are gone. Rejects with TapedeckError not_ready. */
  read(offsets: readonly Offset[], signal: AbortSignal): AsyncGenerator<RecordedEvent, void>;
  /**
   * @throws OutOfRangeError when a limit of the stream has dropped messages after this offset. From the log's start on,
   * what there is is everything
   */
  assertRetained(afterOffset: Offset): Promise<void>;
  /** The first event recorded at or after the moment; undefined when none is. */
  firstSince(time: Date): Promise<Offset | undefined>;
  /**
   * Everything after `afterOffset` that matches, in order, once each; ends when `untilOffset` (inclusive) or the log's
   * end has been passed. Waits while the log is unavailable and continues by itself; ends early, without an error, when the
   * signal aborts.
   * @throws OutOfRangeError where a limit of the stream has dropped what comes next, or nats-server can't read it
   */
  history(from: ReadFrom, untilOffset: Offset, signal: AbortSignal): AsyncGenerator<RecordedEvent, void>;
  /**
   * History, then live, in order, once each, without an end. `caughtUp` is called once, when the live tail is joined,
   * with the log's end of that moment. Waits while the log is unavailable and continues by itself; ends, without an error,
   * when the signal aborts. A consumer that stops asking costs nothing but a number: what it misses is read from the
   * log later.
   * @throws LogReplacedError when the stream is replaced under it (another epoch, or an earlier end)
   * @throws OutOfRangeError as `history`
   */
  follow(from: ReadFrom, options: FollowOptions): AsyncGenerator<RecordedEvent, void>;
  /**
   * Like `read`, for those who read much: neighbors in one message come together. No batch is empty.
   * @throws TapedeckError not_ready, LogReplacedError when the stream is another one
   */
  readBatches(offsets: readonly Offset[], signal: AbortSignal): HeldBatches;
  /** Like `history`, likewise, and with neighboring messages of few events together. */
  historyBatches(from: ReadFrom, untilOffset: Offset, signal: AbortSignal): HeldBatches;
  /** Like `follow`, likewise. */
  followBatches(from: ReadFrom, options: FollowOptions): HeldBatches;
  readonly pages: PageReader;
};

/**
 * The reader for those who ask for a part of the log and wait for the answer. While the servers elect a leader it answers
 * from the log's replicas. Then the end may be behind that of the log, but never before what this reader or its LogReader
 * has given before. Everything rejects with TapedeckError not_ready, `history` too, instead of waiting.
 */
export type PageReader = Pick<
  LogReader,
  "epoch" | "formerEpochs" | "bounds" | "now" | "assertRetained" | "firstSince" | "read" | "history"
>;

/** Events that are not decoded yet, batch by batch. */
export type HeldBatches = AsyncGenerator<readonly HeldEvent[], void>;

/** The last events of many sources at once. */
export type LogSurvey = {
  /**
   * The last event of each subject that matches one of the filters, in the order of the log, for subjects of Tapedeck's own
   * channel: their messages hold events of one subject only. An event that comes meanwhile may be missing. Rejects when the log can't be read to the end; ends early, without an error, when the signal aborts.
   */
  lastOfEach(subjects: readonly string[], signal: AbortSignal): AsyncGenerator<RecordedEvent, void>;
};

/** How a follower ends, and what it reports. What a report throws ends the stream, too. */
export type FollowOptions = {
  readonly signal: AbortSignal;
  readonly caughtUp?: (offset: Offset) => void;
  /** Called whenever nothing more is available now: every match up to this offset was delivered. */
  readonly reached?: (offset: Offset) => void;
  /**
   * It may get live events some 100 ms later than others. Where all followers of a log may, its messages gather meanwhile, and wake the
   * process together. Default: false.
   */
  readonly isPatient?: boolean;
};

/** The stream that the positions belong to no longer exists. */
export class LogReplacedError extends Error {
  override readonly name = "LogReplacedError";

  constructor(epoch: string) {
    super(`the log ${epoch} was replaced by another one`);
  }
}
