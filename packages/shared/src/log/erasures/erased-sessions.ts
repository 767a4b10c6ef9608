import type { NatsConnection } from "nats";
import { retried } from "../../sync/retried.ts";
import type { Sequence } from "../offset.ts";
import { ErasureStore, erasureIn, openErasures } from "./erasure-store.ts";

/** Sessions that must not be read any more, although the log still has them. */
export type ErasedSessions = {
  /** Nothing is being erased, which is so nearly always. */
  readonly isEmpty: boolean;
  has(session: string, sequence: Sequence): boolean;
};

export const nothingErased: ErasedSessions = { isEmpty: true, has: () => false };

/**
 * The sessions that are being erased, as of now: each entry of the bucket is heard as it is written, and all of them are
 * read at the start and after each time that the connection was lost. Rejects when NATS can't be asked at the start.
 */
export async function watchErasedSessions(
  nats: NatsConnection,
  warn: (message: string, fields?: Readonly<Record<string, unknown>>) => void,
): Promise<ErasedSessions & AsyncDisposable> {
  const store = new ErasureStore(nats);
  const lastSeqs = new Map<string, Sequence>();
  const over = new AbortController();
  const subscription = nats.subscribe(openErasures, {
    callback: (err, { subject, data }) => {
      if (err) return warn("erasures can't be watched: give this user of NATS its current permissions", { err });
      const erasure = erasureIn(data);
      if (erasure === undefined) lastSeqs.delete(subject.split(".").at(-1) ?? "");
      else lastSeqs.set(erasure.session, erasure.lastSeq);
    },
  });
  // One that ends while they are read may stay here until the next time, which hides nothing: its events are gone.
  const readAll = async () => {
    const before = [...lastSeqs.keys()];
    const open = new Map((await store.open()).map(({ session, lastSeq }) => [session, lastSeq]));
    for (const session of before) if (!open.has(session)) lastSeqs.delete(session);
    for (const [session, lastSeq] of open) lastSeqs.set(session, lastSeq);
  };
  const watching = (async () => {
    for await (const { type } of nats.status()) {
      if (type === "reconnect") await retried(readAll, over.signal);
    }
  })();
  watching.catch(() => {});
  try {
    await readAll();
  } catch (cause) {
    subscription.unsubscribe();
    throw cause;
  }
  return {
    get isEmpty() {
      return lastSeqs.size === 0;
    },
    has: (session, sequence) => sequence <= (lastSeqs.get(session) ?? 0),
    async [Symbol.asyncDispose]() {
      over.abort();
      subscription.unsubscribe();
    },
  };
}
