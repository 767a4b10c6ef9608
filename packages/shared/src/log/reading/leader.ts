import type { MsgRequest } from "@nats-io/jetstream";
import { TapedeckError } from "../../errors/errors.ts";
import { epochOf } from "../epoch.ts";
import { type LogReader, LogReplacedError } from "../log.ts";
import { endOf, offsetOf, type Sequence } from "../offset.ts";
import { everySubject } from "../subjects.ts";
import type { StreamAccess } from "./consumer.ts";

/** What only the stream's leader knows for certain: a server that delivers messages may lag behind it. */
export class Leader {
  readonly #access: StreamAccess;

  constructor(access: StreamAccess) {
    this.#access = access;
  }

  async bounds(): ReturnType<LogReader["bounds"]> {
    const { state } = await orNotReady(this.#info());
    const firstOffset = offsetOf(Math.max(1, state.first_seq));
    return { firstOffset, lastOffset: endOf(state.last_seq), messages: state.messages, bytes: state.bytes };
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
    return Math.max(...(await orNotReady(Promise.all(lasts))).map((message) => message?.seq ?? 0));
  }

  async firstSince(time: Date): ReturnType<LogReader["firstSince"]> {
    const { jsm, streamName } = this.#access;
    // The leader also takes a start time here; only the client's type lacks it.
    const ms = Math.min(Math.max(time.getTime(), 0), lastMoment);
    const query = { start_time: new Date(ms).toISOString() } as unknown as MsgRequest;
    const message = await orNotReady(jsm.streams.getMessage(streamName, query));
    return message === null ? undefined : offsetOf(message.seq);
  }

  /** @throws LogReplacedError when the stream is another one than that of the epoch */
  async checkSame(epoch: string): Promise<void> {
    if (epochOf(await this.#info()) !== epoch) throw new LogReplacedError(epoch);
  }

  #info() {
    return this.#access.jsm.streams.info(this.#access.streamName);
  }
}

/** The server counts nanoseconds since 1970 in 64 bits, which overflow in 2262: a later time would precede everything. */
const lastMoment = Date.UTC(2262, 0);

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
