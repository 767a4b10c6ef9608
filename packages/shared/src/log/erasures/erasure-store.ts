import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "nats";
import { z } from "zod";
import { callerKind } from "../../audit/caller-kind.ts";
import { isForbidden } from "../cluster/replicas.ts";
import { wrongSequenceCodes } from "../jetstream-writer.ts";
import { bucketNames, ensureBucket } from "../key-value-bucket.ts";

const bucket = "TAPEDECK_ERASURES";
const { stream, subject } = bucketNames(bucket);
const openSubject = (session: string) => subject(`open.${session}`);
const doneSubject = (session: string) => subject(`done.${session}`);

/** The subjects under which erasures begin, advance and end. */
export const openErasures = openSubject("*");

/** How long a repeated request learns that the session was erased. */
const doneTtl = `${90 * 24}h`;
/** How long the end of an erasure is listed in the bucket. */
const endTtl = "60s";

const erasureSchema = z.object({
  /** Full name of the session's source. */
  source: z.string(),
  session: z.string(),
  /** The epoch of the log that the sequences belong to. */
  epoch: z.string(),
  /** Everything of the session up to this sequence is erased, and must not be read any more. */
  lastSeq: z.number(),
  /** Everything of the session up to this sequence is removed from the log. */
  removedSeq: z.number(),
  /** The audit log has that it began; absent: it may not have it yet. */
  audited: z.boolean().optional(),
  /** The end of the log when it had the mark session.erased; absent: it may not have it yet. */
  markedSeq: z.number().optional(),
  /** How many events the log had of the session; absent: not counted yet. */
  events: z.number().optional(),
  /** How many of them are removed. */
  removed: z.number(),
  state: z.enum(["removing", "done"]),
  /** RFC 3339. */
  began: z.string(),
  /** The caller that began it, as in the audit log. */
  who: z.string(),
  kind: callerKind,
  by: z.string().optional(),
});

/** The erasure of a session: it has started, and ingest finishes it. */
export type Erasure = Readonly<z.infer<typeof erasureSchema>>;

type StoredErasure = { readonly erasure: Erasure | undefined; readonly revision: number };

/**
 * The erasures that are under way, and those that have ended in the last 90 days: a KV bucket in the NATS of the log, which
 * is created with the first erasure. An entry is the durable mark: readers of the log leave the session out from then on.
 */
export class ErasureStore {
  readonly #nats: NatsConnection;
  #manager: Promise<JetStreamManager> | undefined;

  /** The connection stays the caller's. */
  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** The one under way, else the one that has ended. From the leader. Rejects when NATS can't be asked. */
  async of(session: string): Promise<Erasure | undefined> {
    const { erasure } = await this.#last(openSubject(session));
    return erasure ?? (await this.#last(doneSubject(session))).erasure;
  }

  /** Those under way. Rejects as `of`. */
  async open(): Promise<readonly Erasure[]> {
    const found: Erasure[] = [];
    for (let seq = 1; ; ) {
      const message = await this.#get({ seq, next_by_subj: openErasures });
      if (message === undefined) return found;
      seq = message.seq + 1;
      const erasure = erasureIn(message.data);
      if (erasure !== undefined) found.push(erasure);
    }
  }

  /** Starts an erasure and returns it, or the one that another caller has just started. Rejects as `of`. */
  async begin(erasure: Erasure): Promise<Erasure> {
    await ensureBucket(await this.#jsm(), bucket, { allow_msg_ttl: true });
    for (;;) {
      const { erasure: other, revision } = await this.#last(openSubject(erasure.session));
      if (other !== undefined) return other;
      try {
        const expect = { lastSubjectSequence: revision };
        await this.#js().publish(openSubject(erasure.session), JSON.stringify(erasure), { expect });
        return erasure;
      } catch (cause) {
        if (!(cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code))) throw cause;
      }
    }
  }

  /** Only for the process that removes it. */
  async advance(erasure: Erasure): Promise<void> {
    await this.#js().publish(openSubject(erasure.session), JSON.stringify(erasure));
  }

  /** Nothing is left of it in the log. */
  async end(erasure: Erasure): Promise<void> {
    const { session } = erasure;
    await this.#js().publish(doneSubject(session), JSON.stringify({ ...erasure, state: "done" }), {
      headers: withTtl(doneTtl),
    });
    const end = withTtl(endTtl);
    end.set("KV-Operation", "DEL");
    await this.#js().publish(openSubject(session), "", { headers: end });
  }

  async #last(key: string): Promise<StoredErasure> {
    const message = await this.#get({ last_by_subj: key });
    return { erasure: message && erasureIn(message.data), revision: message?.seq ?? 0 };
  }

  async #get(query: { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string }) {
    try {
      return (await (await this.#jsm()).streams.getMessage(stream, query)) ?? undefined;
    } catch (cause) {
      // Nothing was ever erased here. A user who may not read the bucket belongs to a server without erasures.
      if ((cause instanceof Error && cause.name === "StreamNotFoundError") || isForbidden(cause)) return undefined;
      throw cause;
    }
  }

  #js() {
    return jetstream(this.#nats, { timeout: 2_000 });
  }

  #jsm(): Promise<JetStreamManager> {
    this.#manager ??= jetstreamManager(this.#nats, { timeout: 2_000, checkAPI: false });
    return this.#manager;
  }
}

function withTtl(ttl: string) {
  const all = headers();
  all.set("Nats-TTL", ttl);
  return all;
}

/** Undefined for the end of one, and for what is no erasure. */
export function erasureIn(data: Uint8Array): Erasure | undefined {
  try {
    return erasureSchema.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined;
  }
}
