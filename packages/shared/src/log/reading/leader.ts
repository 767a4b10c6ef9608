import type { MsgRequest, StreamInfo } from "@nats-io/jetstream";
import { TapedeckError } from "../../errors/errors.ts";
import { epochOf } from "../epoch.ts";
import { type LogBounds, type LogReader, LogReplacedError } from "../log.ts";
import { endOf, offsetOf, type Sequence } from "../offset.ts";
import { everySubject } from "../subjects.ts";
import type { StreamAccess } from "./consumer.ts";
import type { Stored } from "./direct-get.ts";

/** What only the stream's leader knows for certain: a server that delivers messages may lag behind it. */
export class Leader {
  readonly #access: StreamAccess;
  #answered: StreamInfo | undefined;
  #lastSeen: Sequence = 0;

  /** `answered`: its last answer, if the caller has one. */
  constructor(access: StreamAccess, answered?: StreamInfo) {
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

  async firstSince(time: Date): ReturnType<LogReader["firstSince"]> {
    const { jsm, streamName } = this.#access;
    // The leader also takes a start time here; only the client's type lacks it.
    const query = { start_time: timeOf(time) } as unknown as MsgRequest;
    const message = await orNotReady(jsm.streams.getMessage(streamName, query));
    return message === null ? undefined : offsetOf(message.seq);
  }

  /** @throws LogReplacedError when the stream is another one than that of the epoch */
  async checkSame(epoch: string): Promise<void> {
    if (epochOf(await this.#info()) !== epoch) throw new LogReplacedError(epoch);
  }

  async #info(): Promise<StreamInfo> {
    const info = await this.#access.jsm.streams.info(this.#access.streamName);
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

/** The server counts nanoseconds since 1970 in 64 bits, which overflow in 2262: a later time would precede everything. */
const lastMoment = Date.UTC(2262, 0);

/** A moment as the server reads it. */
export function timeOf(time: Date): string {
  return new Date(Math.min(Math.max(time.getTime(), 0), lastMoment)).toISOString();
}

/** Turns a failure of the log into the error that clients get. That it was replaced is no failure. */
export function orNotReady<T>(asked: Promise<T>): Promise<T> {
  return asked.catch((cause: unknown) => {
    if (cause instanceof LogReplacedError) throw cause;
    const isDeleted = cause instanceof Error && cause.name === "StreamNotFoundError";
    const text = isDeleted
      ? "the log was deleted: start Tapedeck again to begin a new one"
      : "the log can't be reached: try again in a moment";
    throw new TapedeckError("not_ready", text, {}, { cause });
  });
}
