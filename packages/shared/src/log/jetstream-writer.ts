import type { JetStreamManager } from "@nats-io/jetstream";
import { headers, type MsgHdrs, type NatsConnection, nuid, RequestError } from "nats";
import type { SourceName } from "../source.ts";
import type { Cursor, LogWriter, NewMessage, PublishOutcome, WriterMark } from "./log.ts";
import type { Sequence } from "./offset.ts";
import { sourceFilter } from "./subjects.ts";

export const largestMessageBytes = Math.floor(7.9 * 1024 * 1024);
export const largestBatchBytes = 4 * 1024 * 1024;
export const largestBatch = 1_000;

/** Room for subject and headers beside the event in the server's max_payload. */
const headerRoom = 4 * 1024;

const writerHeader = "Tapedeck-Writer";
const cursorHeader = "Tapedeck-Cursor";

/** A failed expectation has two codes; on a cluster the second is the usual one. */
const wrongSequenceCodes: readonly number[] = [10071, 10164];

type Deps = {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly streamName: string;
  readonly timeoutMs: number;
};

type PubAck = {
  readonly stream?: string;
  readonly seq?: Sequence;
  readonly count?: number;
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

export function jetstreamWriter({ nc, jsm, streamName, timeoutMs }: Deps): LogWriter {
  return {
    async lastOf(source) {
      // streams.getMessage is answered by the leader; a direct get could be answered by a replica that lags.
      const last = await jsm.streams.getMessage(streamName, { last_by_subj: sourceFilter(source) });
      return last === null ? undefined : { seq: last.seq, mark: readMark(last.header, source) };
    },

    async publish(source, writer, messages, expectedLastSeq) {
      checkSizes(messages, nc.info?.max_payload ?? Number.POSITIVE_INFINITY);
      const batch = messages.length > 1 ? nuid.next() : undefined;
      const envelopes = messages.map(({ cursor, ttlSeconds }, index) => {
        const h = headers();
        h.set(writerHeader, writer);
        h.set(cursorHeader, JSON.stringify(cursor));
        if (ttlSeconds !== undefined) h.set("Nats-TTL", `${Math.max(1, Math.ceil(ttlSeconds))}s`);
        if (batch !== undefined) {
          h.set("Nats-Batch-Id", batch);
          h.set("Nats-Batch-Sequence", String(index + 1));
        }
        return h;
      });
      expectLast(envelopes[0] as MsgHdrs, source, expectedLastSeq);
      try {
        return await send(messages, envelopes, batch !== undefined);
      } catch (cause) {
        return hasNoResponders(cause) ? { outcome: "refused", cause } : { outcome: "unknown", cause };
      }
    },
  };

  /** Sends all but the last without waiting: only the answer to the last one reports the batch's outcome. */
  async function send(
    messages: readonly NewMessage[],
    envelopes: readonly MsgHdrs[],
    batch: boolean,
  ): Promise<PublishOutcome> {
    const end = messages.length - 1;
    for (let i = 0; i < end; i++) {
      const { subject, event } = messages[i] as NewMessage;
      nc.publish(subject, event, { headers: envelopes[i] as MsgHdrs });
    }
    const last = messages[end] as NewMessage;
    const commit = envelopes[end] as MsgHdrs;
    if (batch) commit.set("Nats-Batch-Commit", "1");
    const answer = await nc.request(last.subject, last.event, { headers: commit, timeout: timeoutMs });
    return outcomeOf(answer.json<PubAck>(), messages.length);
  }

  function outcomeOf(ack: PubAck, published: number): PublishOutcome {
    if (ack.error !== undefined) {
      if (wrongSequenceCodes.includes(ack.error.err_code)) return { outcome: "wrong-sequence" };
      const { description, err_code } = ack.error;
      return { outcome: "refused", cause: new LogRefusedError(description, err_code) };
    }
    if (ack.stream !== streamName || ack.seq === undefined || (ack.count ?? 1) !== published) {
      return { outcome: "unknown", cause: new Error(`unexpected answer: ${JSON.stringify(ack)}`) };
    }
    return { outcome: "acknowledged", lastSeq: ack.seq };
  }
}

function expectLast(h: MsgHdrs, source: SourceName, seq: Sequence): void {
  h.set("Nats-Expected-Last-Subject-Sequence", String(seq));
  h.set("Nats-Expected-Last-Subject-Sequence-Subject", sourceFilter(source));
}

/** Before the first publish: a message refused by the client in the middle would leave a batch open on the server. */
function checkSizes(messages: readonly NewMessage[], maxPayload: number): void {
  if (messages.length === 0) throw new RangeError("nothing to publish");
  if (messages.length > largestBatch)
    throw new RangeError(`${messages.length} messages: a batch takes ${largestBatch}`);
  const most = Math.min(largestMessageBytes, maxPayload - headerRoom);
  const sizes = messages.map(({ event }) => event.byteLength);
  const largest = Math.max(...sizes);
  if (largest > most) throw new RangeError(`a message of ${largest} bytes: the log takes ${most}`);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (messages.length > 1 && total > largestBatchBytes) {
    throw new RangeError(`a batch of ${total} bytes: the log takes ${largestBatchBytes}`);
  }
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
export function cursorIn(header: MsgHdrs | undefined): Cursor | undefined {
  const cursor = header?.get(cursorHeader) ?? "";
  return cursor === "" ? undefined : (JSON.parse(cursor) as Cursor);
}

/** Nobody listened on the subject, so nothing was stored: the stream is missing or has no leader. */
function hasNoResponders(cause: unknown): boolean {
  return cause instanceof RequestError && cause.isNoResponders();
}
