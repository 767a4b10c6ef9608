import type { Msg } from "nats";
import { newInbox } from "../../service/nats.ts";
import type { Sequence } from "../offset.ts";
import type { Delivered, StreamAccess } from "./consumer.ts";

/** A stored message as a replica gives it. */
export type Stored = Pick<Delivered, "seq" | "recordedAtMs" | "subject" | "data">;

type DirectAccess = Pick<StreamAccess, "nc" | "streamName">;

/** Which message: the next one from a sequence on, or from a moment on, or the last one of a subject. */
export type DirectQuestion =
  | { readonly seq: Sequence; readonly batch: 1 }
  | { readonly start_time: string; readonly batch: 1 }
  | { readonly last_by_subj: string };

export type DirectBatch = { readonly seq: Sequence; readonly batch: number; readonly max_bytes: number };

/** The replica has no such message, for which undefined stands here; another one may have it. */
const notFound = 404;
const endOfBatch = 204;

/**
 * Asks a replica for one message. The servers choose at random which replica answers, the leader among them, if there is
 * one. Rejects when none answers in time.
 */
export async function directGet(
  { nc, streamName }: DirectAccess,
  question: DirectQuestion,
  timeoutMs: number,
): Promise<Stored | undefined> {
  const answer = await nc.request(subjectOf(streamName), JSON.stringify(question), { timeout: timeoutMs });
  const code = answer.headers?.code ?? 0;
  if (code === notFound) return undefined;
  if (code !== 0) throw new DirectGetError(code, answer.headers?.description);
  return storedIn(answer);
}

/**
 * Asks a replica for the next messages, all from the same one: what it skips is gone. A message that is larger than
 * `max_bytes` comes alone. Undefined if the replica has none.
 */
export async function directBatch(
  { nc, streamName }: DirectAccess,
  request: DirectBatch,
  signal: AbortSignal,
): Promise<readonly Stored[] | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Stored[] | undefined>();
  const messages: Stored[] = [];
  const inbox = newInbox(nc);
  const take = (answer: Msg) => {
    const code = answer.headers?.code ?? 0;
    // The last delivered message, as the replica reports it: it differs if something was lost on the way.
    const before = Number(answer.headers?.get("Nats-Last-Sequence") ?? 0);
    if (code !== 0 && code !== endOfBatch) {
      if (code === notFound) resolve(undefined);
      else reject(new DirectGetError(code, answer.headers?.description));
    } else if (before !== (messages.at(-1)?.seq ?? 0)) reject(new Error("a message was lost in transit"));
    else if (code === endOfBatch) resolve(messages.length === 0 ? undefined : messages);
    else messages.push(storedIn(answer));
  };
  const subscription = nc.subscribe(inbox, { callback: (error, answer) => (error ? reject(error) : take(answer)) });
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  try {
    nc.publish(subjectOf(streamName), JSON.stringify(request), { reply: inbox });
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
    subscription.unsubscribe();
  }
}

/** A replica, or the server itself because there is none (503), answered with something else than messages. */
class DirectGetError extends Error {
  constructor(code: number, description: string | undefined) {
    super(`the replica answered ${code} ${description ?? ""}`);
  }
}

const subjectOf = (streamName: string) => `$JS.API.DIRECT.GET.${streamName}`;

function storedIn({ headers, data }: Msg): Stored {
  const header = (name: string) => headers?.get(name) ?? "";
  return {
    seq: Number(header("Nats-Sequence")),
    // Never rounded up: digits after the milliseconds are not read.
    recordedAtMs: Date.parse(header("Nats-Time-Stamp")),
    subject: header("Nats-Subject"),
    data,
  };
}
