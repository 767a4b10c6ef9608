import type { MsgRequest, StreamConfig, StreamInfo } from "@nats-io/jetstream";
import { TapedeckError } from "../../errors/errors.ts";
import { ownChannel } from "../../events/kinds.ts";
import { eventsIn, labelsOf } from "../batch/batch.ts";
import { infoOfLeader } from "../cluster/leader-info.ts";
import { epochOf } from "../epoch.ts";
import { type LogBounds, type LogReader, LogReplacedError } from "../log.ts";
import { endOf, offsetOf, type Sequence } from "../offset.ts";
import { OutOfRangeError } from "../out-of-range.ts";
import { everySubject } from "../subjects.ts";
import { cursorIn } from "../writing/jetstream-writer.ts";
import type { StreamAccess } from "./consumer.ts";
import type { Stored } from "./direct-get.ts";

/** `epoch`: that of the log, which another one may replace. */
export type LeaderAccess = StreamAccess & { readonly epoch: string };

/** What only the stream's leader knows for certain: a server that delivers messages may lag behind it. */
export class Leader {
  readonly #access: LeaderAccess;
  #answered: StreamInfo | undefined;
  #lastSeen: Sequence = 0;
  #beginning: { readonly first: Sequence; readonly isDropped: boolean } | undefined;

  /** `answered`: its last answer, if the caller has one. */
  constructor(access: LeaderAccess, answered?: StreamInfo) {
    this.#access = access;
    if (answered !== undefined) this.#took(answered);
  }

  async bounds(): ReturnType<LogReader["bounds"]> {
    return boundsIn(await orNotReady(this.#info()));
  }

  /** Those that it answered last; undefined if it never has. */
  get lastBounds(): LogBounds | undefined {
    return this.#answered && boundsIn(this.#answered);
  }

  /** The last message in any of its answers. */
  get lastSeen(): Sequence {
    return this.#lastSeen;
  }

  /** Whether others have what it has. */
  get hasReplicas(): boolean {
    return (this.#answered?.config.num_replicas ?? 1) > 1;
  }

  /** Null: there is none. */
  async message(seq: Sequence): Promise<Stored | null> {
    const found = await this.#access.jsm.streams.getMessage(this.#access.streamName, { seq });
    return found && { seq: found.seq, recordedAtMs: found.time.getTime(), subject: found.subject, data: found.data };
  }

  async now(): ReturnType<LogReader["now"]> {
    const info = await orNotReady(this.#info());
    // The server sends `ts`; only the client's type lacks it.
    const { ts } = info as typeof info & { readonly ts?: string };
    return { at: ts === undefined ? new Date() : new Date(ts), lastOffset: endOf(info.state.last_seq) };
  }

  /** The last message of these subjects, 0 for none. */
  async lastMessage(subjects: readonly string[]): Promise<Sequence> {
    const { jsm, streamName } = this.#access;
    // For all subjects too: the message of the last sequence may be gone, and ">" then finds nothing (2.15.1).
    const lasts = (subjects.length === 0 ? [everySubject] : subjects).map((subject) =>
      jsm.streams.getMessage(streamName, { last_by_subj: subject }),
    );
    const last = Math.max(...(await orNotReady(Promise.all(lasts))).map((message) => message?.seq ?? 0));
    this.#lastSeen = Math.max(this.#lastSeen, last);
    return last;
  }

  /**
   * The first message that the log has, if it dropped others before: by a limit of the stream, or by a purge of
   * it. Otherwise 1: what else is missing at the beginning was erased, has expired or was moved away.
   */
  async firstRetained(): Promise<Sequence> {
    const { config, state } = await this.#info();
    const first = state.first_seq;
    if (first <= 1) return 1;
    if (hasLimits(config)) return first;
    if (this.#beginning?.first !== first) {
      this.#beginning = { first, isDropped: await this.#hasLostBeginning(first) };
    }
    return this.#beginning.isDropped ? first : 1;
  }

  /**
   * The first message from `next` on that can be read, if the one that comes next can't: its file is missing from the
   * server's store. Undefined: nothing is in the way.
   */
  async readableAfter(next: Sequence, subjects: readonly string[]): Promise<Sequence | undefined> {
    const filters = subjects.length === 0 ? [everySubject] : subjects;
    if ((await this.#nextMessage(next, filters)) !== undefined || (await this.lastMessage(subjects)) < next) return;
    const end = (await this.#info()).state.last_seq + 1;
    const isReadable = async (seq: Sequence) =>
      seq >= end || (await this.#nextMessage(seq, [everySubject])) !== undefined;
    let low = next;
    let high = next + 1;
    for (; !(await isReadable(high)); high += 2 * (high - next)) low = high;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (await isReadable(middle)) high = middle;
      else low = middle;
    }
    // What was written meanwhile can be read.
    return (await this.#nextMessage(next, filters)) === undefined ? Math.min(high, end) : undefined;
  }

  async firstSince(time: Date): ReturnType<LogReader["firstSince"]> {
    const { jsm, streamName } = this.#access;
    // The leader also takes a start time here; only the client's type lacks it.
    const query = { start_time: timeOf(time) } as unknown as MsgRequest;
    const message = await orNotReady(jsm.streams.getMessage(streamName, query));
    return message === null ? undefined : offsetOf(message.seq);
  }

  /** @throws LogReplacedError when the stream is another one than that of the epoch */
  async checkSame(): Promise<void> {
    await this.#info();
  }

  /**
   * A source begins with `source.added`, which neither is erased nor expires. The first message of the log is the first one
   * of its source.
   */
  async #hasLostBeginning(first: Sequence): Promise<boolean> {
    const message = await this.#access.jsm.streams.getMessage(this.#access.streamName, { seq: first });
    const ordinal = cursorIn(message?.header)?.ordinals[ownChannel] ?? 0;
    return message !== null && ordinal > ownEventsIn(message.data);
  }

  async #nextMessage(seq: Sequence, subjects: readonly string[]): Promise<Sequence | undefined> {
    for (const subject of subjects) {
      const query = { seq, next_by_subj: subject };
      const found = await this.#access.jsm.streams.getMessage(this.#access.streamName, query);
      if (found !== null) return found.seq;
    }
    return undefined;
  }

  async #info(): Promise<StreamInfo> {
    const { jsm, streamName, epoch } = this.#access;
    const info = await infoOfLeader(jsm, streamName);
    if (epochOf(info) !== epoch) throw new LogReplacedError(epoch);
    this.#took(info);
    return info;
  }

  #took(info: StreamInfo): void {
    this.#answered = info;
    this.#lastSeen = Math.max(this.#lastSeen, info.state.last_seq);
  }
}

function boundsIn({ state }: StreamInfo): LogBounds {
  const firstOffset = offsetOf(Math.max(1, state.first_seq));
  return { firstOffset, lastOffset: endOf(state.last_seq), messages: state.messages, bytes: state.bytes };
}

/** Whether the stream drops messages by itself, all but those that expire. */
function hasLimits({ max_age, max_bytes, max_msgs, max_msgs_per_subject }: StreamConfig): boolean {
  return [max_age, max_bytes, max_msgs, max_msgs_per_subject].some((limit) => limit > 0);
}

function ownEventsIn(data: Uint8Array): number {
  try {
    return eventsIn(data).filter((event) => labelsOf(event).channel === ownChannel).length;
  } catch {
    return Number.POSITIVE_INFINITY; // another program's message shows nothing
  }
}

/** The server counts nanoseconds since 1970 in 64 bits, which overflow in 2262: a later time would precede everything. */
const lastTime = Date.UTC(2262, 0);

/** A moment as the server reads it. */
export function timeOf(time: Date): string {
  return new Date(Math.min(Math.max(time.getTime(), 0), lastTime)).toISOString();
}

/** Turns a failure of the log into the error that clients get. That it was replaced is no failure. */
export function orNotReady<T>(pending: Promise<T>): Promise<T> {
  return pending.catch((cause: unknown) => {
    if (cause instanceof LogReplacedError || cause instanceof OutOfRangeError) throw cause;
    const isDeleted = cause instanceof Error && cause.name === "StreamNotFoundError";
    const text = isDeleted
      ? "the log was deleted: stop Tapedeck, and restore it with `tapedeck restore`, or start a new one with `tapedeck new-epoch`"
      : "the log can't be reached: try again in a moment";
    throw new TapedeckError("not_ready", text, {}, { cause });
  });
}
