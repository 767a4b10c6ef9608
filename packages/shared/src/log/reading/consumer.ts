import type { JetStreamManager } from "@nats-io/jetstream";
import { type Msg, type MsgHdrs, type NatsConnection, nuid } from "nats";
import { newInbox } from "../../service/nats.ts";
import type { Sequence } from "../offset.ts";
import { withoutCovered } from "../subject-match.ts";

export type StreamAccess = {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly streamName: string;
  readonly timeoutMs: number;
};

/** A short-lived reading position on the server, which forgets it after a while without a pull. */
export type Consumer = { readonly name: string };

/** A stored message as a consumer delivers it. */
export type Delivered = {
  readonly seq: Sequence;
  /** 1, 2, 3 … per consumer: a hole means that something was lost on the way. */
  readonly deliverySeq: number;
  readonly recordedAtMs: number;
  /** When the log drops the message, by the clock of the log; undefined: never. */
  readonly expiresAtMs?: number | undefined;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
};

const forgetAfterNs = 10_000_000_000;

/** `from`: begins with this message, or delivers only the last message of each subject. */
export async function addConsumer(
  { jsm, streamName }: StreamAccess,
  from: Sequence | "last of each subject",
  subjects: readonly string[],
): Promise<Consumer> {
  const name = nuid.next();
  await jsm.consumers.add(streamName, {
    name,
    ack_policy: "none",
    ...(typeof from === "number"
      ? { deliver_policy: "by_start_sequence", opt_start_seq: from }
      : { deliver_policy: "last_per_subject" }),
    inactive_threshold: forgetAfterNs,
    mem_storage: true,
    num_replicas: 1,
    ...(subjects.length > 0 && { filter_subjects: [...withoutCovered(subjects)] }),
  });
  return { name };
}

export type PullRequest = {
  readonly batch: number;
  readonly max_bytes?: number;
  readonly no_wait?: boolean;
  /** Nanoseconds. */
  readonly expires?: number;
  readonly idle_heartbeat?: number;
};

export type PullAnswer =
  | { readonly type: "message"; readonly message: Delivered }
  | { readonly type: "status"; readonly code: number; readonly description: string };

/** Sends one pull; every answer to it goes to the callback, in order, until the subscription is closed. */
export function pull(
  { nc, streamName }: StreamAccess,
  consumer: Consumer,
  request: PullRequest,
  answered: (answer: PullAnswer) => void,
): Disposable {
  const inbox = newInbox(nc);
  const subscription = nc.subscribe(inbox, {
    callback: (error, msg) =>
      answered(error ? { type: "status", code: 500, description: error.message } : readAnswer(msg)),
  });
  nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${streamName}.${consumer.name}`, JSON.stringify(request), { reply: inbox });
  return { [Symbol.dispose]: () => subscription.unsubscribe() };
}

/** The next message would exceed the pull's max_bytes: the pull has ended, and more messages are pending. */
export function exceedsMaxBytes(description: string): boolean {
  return /max.?bytes/i.test(description);
}

function readAnswer(msg: Msg): PullAnswer {
  const stored = msg.reply === undefined ? undefined : readDelivery(msg.reply);
  if (stored !== undefined) {
    return { type: "message", message: new DeliveredMessage(msg, stored) };
  }
  const { code = 0, description = "" } = msg.headers ?? {};
  // NATS gives no text with the status that nobody is there to answer.
  return { type: "status", code, description: description || (code === 503 ? "no responders" : "") };
}

/** Parses the headers lazily: they cost as much as the event, which is all that most readers need. */
class DeliveredMessage implements Delivered {
  readonly #msg: Msg;
  readonly seq: Sequence;
  readonly deliverySeq: number;
  readonly recordedAtMs: number;
  readonly subject: string;
  readonly data: Uint8Array;

  constructor(msg: Msg, { seq, deliverySeq, recordedAtMs }: ReturnType<typeof readDelivery> & object) {
    this.#msg = msg;
    this.seq = seq;
    this.deliverySeq = deliverySeq;
    this.recordedAtMs = recordedAtMs;
    this.subject = msg.subject;
    this.data = msg.data;
  }

  get headers(): MsgHdrs | undefined {
    return this.#msg.headers;
  }

  get expiresAtMs(): number | undefined {
    const ttl = Number(/^(\d+)s$/.exec(this.headers?.get("Nats-TTL") ?? "")?.[1]);
    return ttl > 0 ? this.recordedAtMs + ttl * 1_000 : undefined;
  }
}

/**
 * Reads `$JS.ACK.[<domain>.<account hash>.]<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<nanoseconds>.<pending>[.<random>]`.
 */
export function readDelivery(reply: string) {
  const tokens = reply.split(".");
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK") return undefined;
  const first = tokens.length === 9 ? 5 : 7;
  return {
    seq: Number(tokens[first]),
    deliverySeq: Number(tokens[first + 1]),
    // Cut as text: as a number the nanoseconds are inexact, and might round up to a later millisecond than the log's.
    recordedAtMs: Number(tokens[first + 2]?.slice(0, -6)),
  };
}
