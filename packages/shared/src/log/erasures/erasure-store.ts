import {
  JetStreamApiError,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StoredMsg,
} from "@nats-io/jetstream";
import { headers, type NatsConnection } from "nats";
import { z } from "zod";
import { callerKind } from "../../audit/caller-kind.ts";
import { isForbidden } from "../cluster/replicas.ts";
import { bucketNames, ensureBucket } from "../key-value-bucket.ts";
import { wrongSequenceCodes } from "../writing/jetstream-writer.ts";

export const erasuresBucket = "TAPEDECK_ERASURES";
const { stream, subject } = bucketNames(erasuresBucket);
/** The subject of an erasure that is under way, or has ended. `key`: a session, or a developer's. */
export const subjectIn = (state: "open" | "done", key: string) => subject(`${state}.${key}`);
const openSubject = (session: string) => subjectIn("open", session);
const doneSubject = (session: string) => subjectIn("done", session);

/** The subjects under which erasures begin, advance and end. */
export const openErasures = openSubject("*");

/** How long a repeated request learns that the session was erased. */
export const doneTtl = `${90 * 24}h`;
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
  /** Nothing of the session is after this sequence. Absent: after `lastSeq`. */
  endSeq: z.number().optional(),
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
  /** The caller that began it, as in the audit log; "retention": it ended longer ago than its workspace keeps facts. */
  who: z.string(),
  kind: callerKind.or(z.literal("retention")),
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
  open(): Promise<readonly Erasure[]> {
    return this.#all(openErasures);
  }

  /** Those that have ended in the last 90 days. Rejects as `of`. */
  done(): Promise<readonly Erasure[]> {
    return this.#all(doneSubject("*"));
  }

  /** A repeated request no longer learns that the session was erased. */
  async forget(session: string): Promise<void> {
    await this.#js().publish(doneSubject(session), "", { headers: withEnd() });
  }

  async #all(subjects: string): Promise<readonly Erasure[]> {
    const found: Erasure[] = [];
    for (let seq = 1; ; ) {
      const message = await this.#get({ seq, next_by_subj: subjects });
      if (message === undefined) return found;
      seq = message.seq + 1;
      const erasure = erasureIn(message.data);
      if (erasure !== undefined) found.push(erasure);
    }
  }

  /** Starts an erasure and returns it, or the one that another caller has just started. Rejects as `of`. */
  async begin(erasure: Erasure): Promise<Erasure> {
    await ensureBucket(await this.#jsm(), erasuresBucket, { allow_msg_ttl: true });
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

  /** Nothing is left of it in the log, and nobody asks for it. */
  async drop({ session }: Erasure): Promise<void> {
    await this.#js().publish(openSubject(session), "", { headers: withEnd() });
  }

  /** Nothing is left of it in the log. */
  async end(erasure: Erasure): Promise<void> {
    const { session } = erasure;
    await this.#js().publish(doneSubject(session), JSON.stringify({ ...erasure, state: "done" }), {
      headers: withTtl(doneTtl),
    });
    await this.#js().publish(openSubject(session), "", { headers: withEnd() });
  }

  async #last(key: string): Promise<StoredErasure> {
    const message = await this.#get({ last_by_subj: key });
    return { erasure: message && erasureIn(message.data), revision: message?.seq ?? 0 };
  }

  async #get(query: EntryQuery) {
    return await messageOf(await this.#jsm(), query);
  }

  #js() {
    return jetstream(this.#nats, { timeout: 2_000 });
  }

  #jsm(): Promise<JetStreamManager> {
    this.#manager ??= jetstreamManager(this.#nats, { timeout: 2_000, checkAPI: false });
    return this.#manager;
  }
}

type EntryQuery = { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string };

/** A message of the bucket; undefined: there is none. Rejects when NATS can't be asked. */
export async function messageOf(jsm: JetStreamManager, query: EntryQuery): Promise<StoredMsg | undefined> {
  try {
    return (await jsm.streams.getMessage(stream, query)) ?? undefined;
  } catch (cause) {
    // Nothing was ever erased here. A user who may not read the bucket belongs to a server without erasures.
    if ((cause instanceof Error && cause.name === "StreamNotFoundError") || isForbidden(cause)) return undefined;
    throw cause;
  }
}

/** The headers of an entry's end. */
export function withEnd() {
  const end = withTtl(endTtl);
  end.set("KV-Operation", "DEL");
  return end;
}

export function withTtl(ttl: string) {
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

const entrySchema = z.object({ source: z.string().optional(), workspace: z.string().optional() });

/** Nothing is kept of the erasures in this workspace, of sessions and of developers. Rejects when NATS can't be asked. */
export async function forgetErasures(nats: NatsConnection, workspace: string): Promise<void> {
  const jsm = await jetstreamManager(nats, { timeout: 2_000, checkAPI: false });
  for (let seq = 1; ; ) {
    const message = await messageOf(jsm, { seq, next_by_subj: subject("*.*") });
    if (message === undefined) return;
    seq = message.seq + 1;
    if (isOf(workspace, message.data))
      await jetstream(nats, { timeout: 2_000 }).publish(message.subject, "", { headers: withEnd() });
  }
}

function isOf(workspace: string, data: Uint8Array): boolean {
  try {
    const { source, workspace: own } = entrySchema.parse(JSON.parse(new TextDecoder().decode(data)));
    return own === workspace || source?.startsWith(`${workspace}/`) === true;
  } catch {
    return false; // the end of one
  }
}
