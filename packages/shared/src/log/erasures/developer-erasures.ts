import { createHash } from "node:crypto";
import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { z } from "zod";
import { callerKind } from "../../audit/caller-kind.ts";
import { auditEntry } from "../../audit/entry.ts";
import { ensureBucket } from "../key-value-bucket.ts";
import { wrongSequenceCodes } from "../writing/jetstream-writer.ts";
import { doneTtl, erasuresBucket, messageOf, openErasures, subjectIn, withEnd, withTtl } from "./erasure-store.ts";

const developerErasureSchema = z.object({
  workspace: z.string(),
  /** Absent once nothing of the developer is left: then the name is gone as well. */
  developer: z.string().optional(),
  /** The ids of the developer's tokens, by which the audit log knows the developer. */
  tokens: z.array(z.string()).readonly(),
  /** The audit log has that it began; absent: it may not have it yet. */
  audited: z.boolean().optional(),
  /** How many sessions were found, and how many of them are erased. */
  sessions: z.number(),
  erased: z.number(),
  /** What keeps it from its end, a sentence; absent: nothing does. */
  waitsFor: z.string().optional(),
  /** At its end: who exported one of the sessions before, as far as the audit log reaches. */
  exports: z.array(auditEntry.pick({ time: true, who: true, kind: true })).optional(),
  state: z.enum(["removing", "done"]),
  /** RFC 3339. */
  began: z.string(),
  /** The caller that began it, as in the audit log. */
  who: z.string(),
  kind: callerKind,
  by: z.string().optional(),
});

/** The erasure of everything of a developer in a workspace: it has started, and ingest finishes it. */
export type DeveloperErasure = Readonly<z.infer<typeof developerErasureSchema>>;

export type Developer = { readonly workspace: string; readonly developer: string };

/** A developer's key in the bucket. It does not contain the name, because the end of the erasure stays there for a while. */
export function developerKey({ workspace, developer }: Developer): string {
  return `developer-${createHash("sha256").update(`${workspace}/${developer}`).digest("hex").slice(0, 32)}`;
}

/** The erasures of developers, in the bucket of the sessions' ones. Every method rejects when NATS can't be asked. */
export class DeveloperErasureStore {
  readonly #nats: NatsConnection;
  #manager: Promise<JetStreamManager> | undefined;

  /** The connection stays the caller's. */
  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** The one under way, else the one that has ended. From the leader. */
  async of(key: string): Promise<DeveloperErasure | undefined> {
    return (await this.#last(subjectIn("open", key))).erasure ?? (await this.#last(subjectIn("done", key))).erasure;
  }

  /** Those under way. */
  async open(): Promise<readonly DeveloperErasure[]> {
    const found: DeveloperErasure[] = [];
    for (let seq = 1; ; ) {
      const message = await messageOf(await this.#jsm(), { seq, next_by_subj: openErasures });
      if (message === undefined) return found;
      seq = message.seq + 1;
      const erasure = parsed(message.data);
      if (erasure !== undefined) found.push(erasure);
    }
  }

  /** Starts an erasure and returns it, or the one that another caller has just started. */
  async begin(key: string, erasure: DeveloperErasure): Promise<DeveloperErasure> {
    await ensureBucket(await this.#jsm(), erasuresBucket, { allow_msg_ttl: true });
    for (;;) {
      const { erasure: other, revision } = await this.#last(subjectIn("open", key));
      if (other !== undefined) return other;
      try {
        const expect = { lastSubjectSequence: revision };
        await this.#js().publish(subjectIn("open", key), JSON.stringify(erasure), { expect });
        return erasure;
      } catch (cause) {
        if (!(cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code))) throw cause;
      }
    }
  }

  /** Only for the process that works on it. */
  async advance(key: string, erasure: DeveloperErasure): Promise<void> {
    await this.#js().publish(subjectIn("open", key), JSON.stringify(erasure));
  }

  /** Nothing is left of the developer. */
  async end(key: string, { developer: _, waitsFor: __, ...erasure }: DeveloperErasure): Promise<void> {
    const done = JSON.stringify({ ...erasure, tokens: [], state: "done" });
    await this.#js().publish(subjectIn("done", key), done, { headers: withTtl(doneTtl) });
    await this.#js().publish(subjectIn("open", key), "", { headers: withEnd() });
  }

  async #last(key: string) {
    const message = await messageOf(await this.#jsm(), { last_by_subj: key });
    return { erasure: message && parsed(message.data), revision: message?.seq ?? 0 };
  }

  #js() {
    return jetstream(this.#nats, { timeout: 2_000 });
  }

  #jsm(): Promise<JetStreamManager> {
    this.#manager ??= jetstreamManager(this.#nats, { timeout: 2_000, checkAPI: false });
    return this.#manager;
  }
}

/** Undefined for the end of one, and for the erasure of a session. */
function parsed(data: Uint8Array): DeveloperErasure | undefined {
  try {
    return developerErasureSchema.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined;
  }
}
