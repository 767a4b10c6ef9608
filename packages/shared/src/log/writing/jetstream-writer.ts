import type { JetStreamManager } from "@nats-io/jetstream";
import { headers, type MsgHdrs, type NatsConnection, NoRespondersError } from "nats";
import type { SourceName } from "../../source.ts";
import { encodeBatch } from "../batch/batch.ts";
import {
  type Cursor,
  fitTogether,
  type LogWriter,
  type NewEvent,
  type PublishOutcome,
  type WriterMark,
} from "../log.ts";
import { indexesPerMessage, type Sequence } from "../offset.ts";
import { isTextSubject, sourceFilter } from "../subjects.ts";
import { publishRequests } from "./publish-requests.ts";

/** The most bytes of one message of the log. */
export const largestMessageBytes = Math.floor(7.9 * 1024 * 1024);

/** Room for subject and headers beside the events in the server's max_payload. */
const headerRoom = 4 * 1024;

/** The headers of each message. */
const writerHeader = "Tapedeck-Writer";
const cursorHeader = "Tapedeck-Cursor";

/** A failed expectation has two codes; on a cluster the second is the usual one. */
export const wrongSequenceCodes: readonly number[] = [10071, 10164];

type Deps = {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly streamName: string;
  readonly timeoutMs: number;
};

type PubAck = {
  readonly stream?: string;
  readonly seq?: Sequence;
  readonly error?: { readonly code: number; readonly err_code: number; readonly description: string };
};

/** The server stored nothing, and said why. */
export class LogRefusedError extends Error {
  override readonly name = "LogRefusedError";
  readonly code: number;
  constructor(description: string, code: number) {
    super(`the log refused: ${description} (${code})`);
    this.code = code;
  }

  /** The server's or the stream's storage limit is reached. A full disk instead looks like a server that does not answer. */
  get isFull(): boolean {
    return fullCodes.includes(this.code) || /no space left|maximum bytes/.test(this.message);
  }
}

/** Insufficient resources; insufficient storage resources; resource limits exceeded for the account. */
const fullCodes: readonly number[] = [10023, 10047, 10002];

/** The writing side of the log on JetStream. */
export function jetstreamWriter({ nc, jsm, streamName, timeoutMs }: Deps): LogWriter {
  return {
    async lastOf(source) {
      // streams.getMessage is answered by the leader; a direct get could be answered by a replica that lags.
      const last = await jsm.streams.getMessage(streamName, { last_by_subj: sourceFilter(source) });
      return last === null ? undefined : { seq: last.seq, mark: readMark(last.header, source) };
    },

    async publish(source, writer, events, expectedLastSeq) {
      const { cursor, ttlSeconds } = lastOfBatch(events);
      const { subject } = (events.find((event) => !isTextSubject(event.subject)) ?? events[0]) as NewEvent;
      const body = encodeBatch(events.map(({ event }) => event));
      checkSize(body.byteLength, nc.info?.max_payload ?? Number.POSITIVE_INFINITY);
      const h = headers();
      h.set(writerHeader, writer);
      h.set(cursorHeader, JSON.stringify(cursor));
      if (ttlSeconds !== undefined) h.set("Nats-TTL", `${Math.max(1, Math.ceil(ttlSeconds))}s`);
      h.set("Nats-Expected-Last-Subject-Sequence", String(expectedLastSeq));
      h.set("Nats-Expected-Last-Subject-Sequence-Subject", sourceFilter(source));
      try {
        return outcomeOf((await publishRequests(nc).request(subject, body, h, timeoutMs)).json<PubAck>());
      } catch (cause) {
        // Nobody listened on the subject, so nothing was stored: the stream is missing or has no leader.
        return { outcome: cause instanceof NoRespondersError ? "refused" : "unknown", cause };
      }
    },
  };

  function outcomeOf(ack: PubAck): PublishOutcome {
    if (ack.error !== undefined) {
      if (wrongSequenceCodes.includes(ack.error.err_code)) return { outcome: "wrong-sequence" };
      const { description, err_code } = ack.error;
      return { outcome: "refused", cause: new LogRefusedError(description, err_code) };
    }
    if (ack.stream !== streamName || ack.seq === undefined) {
      return { outcome: "unknown", cause: new Error(`unexpected answer: ${JSON.stringify(ack)}`) };
    }
    return { outcome: "acknowledged", seq: ack.seq };
  }
}

/** What the whole message gets from its last event. */
function lastOfBatch(events: readonly NewEvent[]): NewEvent {
  const last = events.at(-1);
  if (last === undefined) throw new RangeError("nothing to publish");
  if (events.length > indexesPerMessage) {
    throw new RangeError(`${events.length} events: a message takes ${indexesPerMessage}`);
  }
  if (!events.every((event) => fitTogether(event, last))) {
    throw new RangeError("events of several subjects, sessions or lives: a message takes those of one");
  }
  return last;
}

function checkSize(bytes: number, maxPayload: number): void {
  const max = Math.min(largestMessageBytes, maxPayload - headerRoom);
  if (bytes > max) throw new RangeError(`a message of ${bytes} bytes: the log takes ${max}`);
}

function readMark(header: MsgHdrs, source: SourceName): WriterMark {
  const writer = header.get(writerHeader);
  const cursor = header.get(cursorHeader);
  if (writer === "" || cursor === "") {
    throw new Error(
      `the last message of ${source} has no ${writerHeader} and ${cursorHeader}: another program writes here`,
    );
  }
  return { writer, cursor: JSON.parse(cursor) as Cursor };
}

/** Undefined if another program wrote the message. */
export function writerIn(header: MsgHdrs | undefined): string | undefined {
  return header?.get(writerHeader) || undefined;
}

/** Likewise. */
export function cursorIn(header: MsgHdrs | undefined): Cursor | undefined {
  const cursor = header?.get(cursorHeader) ?? "";
  return cursor === "" ? undefined : (JSON.parse(cursor) as Cursor);
}
