import type { ArriveRequest, ArriveResponse, MovedMessage } from "@tapedeck/proto/tapedeck/v1/maintain";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { movedBatch } from "@tapedeck/shared/log/batch";
import { cursorHeader, writerHeader, wrongSequenceCodes } from "@tapedeck/shared/log/jetstream-writer";
import type { Sequence } from "@tapedeck/shared/log/offset";
import { streamName, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { headers, type NatsConnection } from "nats";
import { notReady } from "../push-errors.ts";
import type { Store } from "../recorder-options.ts";
import { holdsOwn, type LastCopied, lastCopied } from "./held.ts";
import { MoveMarks } from "./move-marks.ts";

const timeoutMs = 2_000;

/** A leader that changes refuses for a moment. A full log goes on. */
const maxRefusals = 5;

/** Room for subject and headers in the server's max_payload. */
const headerRoom = 4 * 1024;

/**
 * tapedeck.v1.Maintain/Arrive: adds the messages in their order, one in flight. Each expects that the one before is the
 * workspace's last. So messages are neither skipped nor added twice, however many movers are at work, and the log
 * itself says how far the copy has come.
 */
export async function* arriveCall(
  request: ArriveRequest,
  store: Store | undefined,
  signal: AbortSignal,
): AsyncGenerator<ArriveResponse, void> {
  if (store === undefined) throw notReady("the log is unavailable");
  const { workspace, epoch, after_sequence, messages } = request;
  const { mark } = await new MoveMarks(store.nats).of(workspace);
  if (mark?.state !== "arriving") throw invalidArgument(`the workspace "${workspace}" does not arrive here`);
  let last = await lastCopied(store.nats, workspace);
  if (last !== undefined && last.moved?.epoch !== epoch) throw invalidArgument(holdsOwn(workspace));
  if ((last?.moved?.sequence ?? 0) !== Number(after_sequence)) throw overtaken(workspace);
  for (const message of messages) {
    last = await add(message, last, { workspace, epoch, nats: store.nats, signal });
    if (signal.aborted) return;
  }
  yield {};
}

function overtaken(workspace: string) {
  return notReady(`another move of "${workspace}" is under way`);
}

type Adding = {
  readonly workspace: string;
  readonly epoch: string;
  readonly nats: NatsConnection;
  readonly signal: AbortSignal;
};

type PubAck = {
  readonly stream?: string;
  readonly seq?: Sequence;
  /** A refusal: the stream's name and sequence 0 come along. */
  readonly error?: { readonly err_code: number; readonly description: string };
};

async function add(
  message: MovedMessage,
  before: LastCopied | undefined,
  { workspace, epoch, nats, signal }: Adding,
): Promise<LastCopied | undefined> {
  const { subject, sequence, recorded_at_ms } = message;
  if (!subject.startsWith(workspaceFilter(workspace).slice(0, -1))) throw invalidArgument(`${subject} is elsewhere`);
  const moved = { epoch, sequence: Number(sequence), recordedAtMs: Number(recorded_at_ms) };
  const body = movedBatch(message.body, moved);
  const max = (nats.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerRoom;
  if (body.byteLength > max) {
    throw invalidArgument(`a message of ${body.byteLength} bytes: this shard's nats-server takes ${max} (max_payload)`);
  }
  const waits = backoff(50, 2_000);
  let refusals = 0;
  while (!signal.aborted) {
    const h = headersOf(message, workspace, before?.seq ?? 0);
    // A refusal, and an answer that does not come, are settled by what is there.
    const ack = await nats
      .request(subject, body, { headers: h, timeout: timeoutMs })
      .then((answer) => answer.json<PubAck>())
      .catch(() => undefined);
    if (ack?.error === undefined && ack?.stream === streamName && ack.seq) return { seq: ack.seq, moved };
    const last = await lastCopied(nats, workspace).catch(() => "unknown" as const);
    if (last !== "unknown") {
      if (last?.moved?.epoch === epoch && last.moved.sequence === moved.sequence) return last;
      if ((last?.seq ?? 0) !== (before?.seq ?? 0)) throw overtaken(workspace);
    }
    const { error } = ack ?? {};
    if (error !== undefined && !wrongSequenceCodes.includes(error.err_code) && ++refusals === maxRefusals) {
      throw notReady(`the new shard's log accepts no messages: ${error.description}`);
    }
    await delay(waits.next(), signal);
  }
  return before;
}

function headersOf({ writer, cursor, ttl_seconds }: MovedMessage, workspace: string, expected: Sequence) {
  const h = headers();
  h.set(writerHeader, writer);
  h.set(cursorHeader, cursor);
  if (ttl_seconds > 0n) h.set("Nats-TTL", `${ttl_seconds}s`);
  h.set("Nats-Expected-Last-Subject-Sequence", String(expected));
  h.set("Nats-Expected-Last-Subject-Sequence-Subject", workspaceFilter(workspace));
  return h;
}
