import {
  JetStreamApiError,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StoredMsg,
} from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { z } from "zod";
import { callerKind } from "../../audit/caller-kind.ts";
import { asciiName, nameOfAscii } from "../../source.ts";
import { isForbidden } from "../cluster/replicas.ts";
import { doneTtl, withTtl } from "../erasures/erasure-store.ts";
import { bucketNames, ensureBucket } from "../key-value-bucket.ts";
import { wrongSequenceCodes } from "../writing/jetstream-writer.ts";

const bucket = "TAPEDECK_WORKSPACES";
const { stream, subject } = bucketNames(bucket);

/** The subjects of all entries. */
export const workspaceEntries = subject("*.*");

const removalSubject = (workspace: string) => subject(`removal.${asciiName(workspace)}`);
const retentionSubject = (workspace: string) => subject(`retention.${asciiName(workspace)}`);

const removalSchema = z.object({
  workspace: z.string(),
  /**
   * The epochs of the logs that were removed, from "removing" on. What is kept of them elsewhere counts for nothing: rows and
   * ends of sources.
   */
  epochs: z.array(z.string()).readonly(),
  /** "requested": nothing is removed yet. "refused": nothing was, because something is being recorded. */
  state: z.enum(["requested", "removing", "refused", "done"]),
  /** Why it was refused. */
  reason: z.string().optional(),
  /** How many messages the log had. */
  messages: z.number().optional(),
  /** The audit log has it; absent: it may not have it yet. */
  audited: z.boolean().optional(),
  /** RFC 3339. */
  began: z.string(),
  /** The caller that began it, as in the audit log. */
  who: z.string(),
  kind: callerKind,
  by: z.string().optional(),
});

/** The removal of a workspace: it has started, and ingest finishes it. */
export type Removal = Readonly<z.infer<typeof removalSchema>>;

/** Seconds; null: for ever. Absent: as the settings say. */
const retentionSchema = z.object({
  facts: z.number().int().min(1).nullable().optional(),
  text: z.number().int().min(1).nullable().optional(),
});

/** How long what is recorded in a workspace is kept, where that differs from the settings. */
export type Retention = Readonly<z.infer<typeof retentionSchema>>;

export type WorkspaceEntry =
  | { readonly type: "removal"; readonly workspace: string; readonly removal: Removal }
  | { readonly type: "retention"; readonly workspace: string; readonly retention: Retention };

/** Epochs that are remembered. */
const maxEpochs = 100;

export function isRemoving(removal: Removal | undefined): boolean {
  return removal?.state === "requested" || removal?.state === "removing";
}

/** The removal with these epochs, too. */
export function withEpochs(removal: Removal, epochs: readonly string[]): Removal {
  return { ...removal, epochs: [...new Set([...removal.epochs, ...epochs])].slice(-maxEpochs) };
}

/**
 * What is known of workspaces beside their logs, in a bucket of NATS: removals that are under way or have ended in the last 90
 * days, and the retention of some. Every method rejects when NATS can't be asked.
 */
export class WorkspaceStore {
  readonly #nats: NatsConnection;
  #manager: Promise<JetStreamManager> | undefined;

  /** The connection stays the caller's. */
  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** Makes the bucket, unless it is there. */
  async ensure(): Promise<void> {
    await ensureBucket(await this.#jsm(), bucket, { allow_msg_ttl: true });
  }

  /** From the leader; undefined: none was ever begun. */
  async removalOf(workspace: string): Promise<Removal | undefined> {
    return (await this.#lastRemoval(workspace)).removal;
  }

  /** Starts a removal and returns it, or the one that another caller has just started. */
  async begin(removal: Omit<Removal, "epochs" | "state">): Promise<Removal> {
    for (;;) {
      const { removal: other, revision } = await this.#lastRemoval(removal.workspace);
      if (other !== undefined && isRemoving(other)) return other;
      const begun: Removal = { ...removal, state: "requested", epochs: other?.epochs ?? [] };
      try {
        const expect = { lastSubjectSequence: revision };
        await this.#js().publish(removalSubject(removal.workspace), JSON.stringify(begun), { expect });
        return begun;
      } catch (cause) {
        if (!(cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code))) throw cause;
      }
    }
  }

  /** Only for the process that works on it. */
  async advance(removal: Removal): Promise<void> {
    const isOver = !isRemoving(removal);
    const headers = isOver ? { headers: withTtl(doneTtl) } : {};
    await this.#js().publish(removalSubject(removal.workspace), JSON.stringify(removal), headers);
  }

  /** From the leader; empty: as the settings say. */
  async retentionOf(workspace: string): Promise<Retention> {
    const message = await entryOf(await this.#jsm(), { last_by_subj: retentionSubject(workspace) });
    return (message && parsed(message.data, retentionSchema)) ?? {};
  }

  async putRetention(workspace: string, retention: Retention): Promise<void> {
    await this.#js().publish(retentionSubject(workspace), JSON.stringify(retention));
  }

  /** All that is stored. */
  async all(): Promise<readonly WorkspaceEntry[]> {
    const found: WorkspaceEntry[] = [];
    for (let seq = 1; ; ) {
      const message = await entryOf(await this.#jsm(), { seq, next_by_subj: workspaceEntries });
      if (message === undefined) return found;
      seq = message.seq + 1;
      found.push(...entriesIn(message));
    }
  }

  async #lastRemoval(workspace: string) {
    const message = await entryOf(await this.#jsm(), { last_by_subj: removalSubject(workspace) });
    return { removal: message && parsed(message.data, removalSchema), revision: message?.seq ?? 0 };
  }

  #js() {
    return jetstream(this.#nats, { timeout: 2_000 });
  }

  #jsm(): Promise<JetStreamManager> {
    this.#manager ??= jetstreamManager(this.#nats, { timeout: 2_000, checkAPI: false });
    return this.#manager;
  }
}

/** The epochs of logs of this name that were removed. Empty for a user who may not know. */
export async function removedEpochs(jsm: JetStreamManager, workspace: string): Promise<readonly string[]> {
  const message = await entryOf(jsm, { last_by_subj: removalSubject(workspace) });
  return (message && parsed(message.data, removalSchema)?.epochs) ?? [];
}

/** What a message of the bucket says: one entry or, where it is of another Tapedeck, none. */
export function entriesIn({ subject: of, data }: Pick<StoredMsg, "subject" | "data">): readonly WorkspaceEntry[] {
  const [type, name = ""] = of.split(".").slice(-2);
  const workspace = nameOfAscii(name);
  if (type === "retention") {
    const retention = parsed(data, retentionSchema);
    return retention === undefined ? [] : [{ type, workspace, retention }];
  }
  const removal = parsed(data, removalSchema);
  return removal === undefined ? [] : [{ type: "removal", workspace, removal }];
}

type EntryQuery = { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string };

async function entryOf(jsm: JetStreamManager, query: EntryQuery): Promise<StoredMsg | undefined> {
  try {
    return (await jsm.streams.getMessage(stream, query)) ?? undefined;
  } catch (cause) {
    // An ingest makes the bucket when it starts.
    if ((cause instanceof Error && cause.name === "StreamNotFoundError") || isForbidden(cause)) return undefined;
    throw cause;
  }
}

function parsed<T>(data: Uint8Array, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined;
  }
}
