import {
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { replicasOfLogs, replicateAsLogs } from "../log/cluster/replicas.ts";
import { asciiName } from "../source.ts";
import { type AuditEntry, auditEntry } from "./entry.ts";

/** The stream of the audit log. It is not the log of events. */
export const auditStream = "TAPEDECK_AUDIT";
const subjectPrefix = "tapedeck-audit.";

/** When entries go: at this age, or when all of them together are larger. */
export type AuditBounds = { readonly maxAgeMs: number; readonly maxBytes: number };

/** The bounds of the audit log without settings of an operator: 400 days and 256 MiB. */
export const defaultBounds: AuditBounds = { maxAgeMs: 400 * 86_400_000, maxBytes: 256 * 1024 * 1024 };

/** Which entries of the audit log are read. */
export type AuditPeriod = {
  /** Undefined: of all workspaces, and what concerns none. */
  readonly workspace?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
};

/** The audit log, in the NATS stream `TAPEDECK_AUDIT`: one message for each entry, by workspace. */
export type AuditStore = {
  append(entry: AuditEntry): Promise<void>;
  /** The entries up to now, the oldest first. An entry whose person was erased since comes later. */
  read(period: AuditPeriod): AsyncGenerator<AuditEntry, void>;
};

/**
 * Creates the stream if it is missing. Given bounds replace the stream's; without them they stay, as they are the
 * gateway's setting. Rejects when NATS can't be asked. The connection stays the caller's.
 */
export async function openAuditStore(nc: NatsConnection, bounds?: AuditBounds, timeoutMs = 2_000): Promise<AuditStore> {
  const jsm = await jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false });
  await ensureStream(jsm, bounds);
  return new AuditStream(jetstream(nc, { timeout: timeoutMs }));
}

const batch = 500;
const batchMs = 5_000;

class AuditStream implements AuditStore {
  readonly #js: JetStreamClient;

  constructor(js: JetStreamClient) {
    this.#js = js;
  }

  async append(entry: AuditEntry): Promise<void> {
    await this.#js.publish(subjectOf(entry.workspace), JSON.stringify(entry));
  }

  async *read({ workspace, since, until }: AuditPeriod): AsyncGenerator<AuditEntry, void> {
    // NATS has no times as late as people can write.
    if (since !== undefined && since.getTime() > Date.now()) return;
    const consumer = await this.#js.consumers.get(auditStream, {
      filter_subjects: [workspace === undefined ? `${subjectPrefix}>` : subjectOf(workspace)],
      ...(since === undefined
        ? { deliver_policy: "all" as const }
        : { deliver_policy: "by_start_time" as const, opt_start_time: since.toISOString() }),
    });
    let { num_pending: pending } = await consumer.info();
    try {
      while (pending > 0) {
        const before = pending;
        for await (const message of await consumer.fetch({ max_messages: batch, expires: batchMs })) {
          pending = message.info.pending;
          const entry = entryIn(message.data);
          if (entry !== undefined && isIn(entry, { since, until })) yield entry;
          if (pending === 0) break;
        }
        if (pending === before) throw new Error("the audit log does not answer");
      }
    } finally {
      await consumer.delete().catch(() => {}); // NATS forgets it by itself
    }
  }
}

function isIn({ time }: AuditEntry, { since, until }: Omit<AuditPeriod, "workspace">): boolean {
  const at = Date.parse(time);
  return at >= (since?.getTime() ?? at) && at <= (until?.getTime() ?? at);
}

export function subjectOf(workspace: string): string {
  return `${subjectPrefix}${asciiName(workspace)}`;
}

/** Nothing is deleted from it but by its bounds, and where an erased person is replaced: see person.ts. */
async function ensureStream(jsm: JetStreamManager, bounds: AuditBounds | undefined): Promise<void> {
  const { maxAgeMs, maxBytes } = bounds ?? defaultBounds;
  const limits = { max_age: maxAgeMs * 1_000_000, max_bytes: maxBytes };
  try {
    await jsm.streams.add({
      name: auditStream,
      subjects: [`${subjectPrefix}>`],
      storage: "file",
      discard: "old",
      deny_purge: true,
      ...limits,
      num_replicas: await replicasOfLogs(jsm),
    });
  } catch (cause) {
    // It exists with other bounds, or with its operator's own settings.
    if (!(cause instanceof JetStreamApiError && cause.code === streamExists)) throw cause;
    if (bounds !== undefined) await jsm.streams.update(auditStream, limits);
    await replicateAsLogs(jsm, auditStream);
  }
}

const streamExists = 10058;

export function entryIn(data: Uint8Array): AuditEntry | undefined {
  try {
    return auditEntry.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined; // of a newer version, or another program's
  }
}
