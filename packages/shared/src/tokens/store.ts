import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "nats";
import { z } from "zod";
import { type MadeToken, type TokenRecord, tokenRecord } from "./token.ts";

const bucket = "TAPEDECK_TOKENS";
const stream = `KV_${bucket}`;
const everyKey = `$KV.${bucket}.>`;

/** The tokens of a Tapedeck, in the NATS KV bucket `TAPEDECK_TOKENS`: key SHA-256 of the text in hex, value the record. */
export type TokenStore = {
  create(token: MadeToken): Promise<void>;
  /** Newest first, expired ones too. */
  list(): Promise<readonly TokenRecord[]>;
  /** What was revoked; undefined where no token of that id is (in the workspace, where one is named). */
  revoke(id: string, workspace?: string): Promise<TokenRecord | undefined>;
  /**
   * Puts back what a backup had. What the bucket knows of a token stands, a revocation above all; so does a revocation
   * that only the backup knows of. Gives how many were put back, and how many stay revoked though the backup had them.
   */
  putBack(kept: TokenBackup): Promise<{ readonly added: number; readonly stayRevoked: number }>;
  /** What is there now, by the bucket's leader; costs one request where nothing has changed since. */
  read(since?: TokensSeen): Promise<TokensSeen>;
};

/** All that the bucket knows, by hash; null: revoked. */
export type TokenBackup = Readonly<Record<string, TokenRecord | null>>;

export const tokenBackup = z.record(z.string().regex(/^[0-9a-f]{64}$/), tokenRecord.nullable());

export function backupOf({ entries }: Pick<TokensSeen, "entries">): TokenBackup {
  return Object.fromEntries([...entries].map(([hash, { record }]) => [hash, record ?? null]));
}

/** What the bucket held at a moment. */
export type TokensSeen = {
  /** The bucket was made then: another one is another bucket. */
  readonly made: string;
  readonly lastSeq: number;
  /** By hash; without a record where the token was revoked, or the value is none. */
  readonly entries: ReadonlyMap<string, TokenEntry>;
};

export type TokenEntry = { readonly seq: number; readonly record: TokenRecord | undefined };

/** Makes the bucket when it is missing. Rejects when NATS can't be asked. The connection stays the caller's. */
export async function openTokenStore(nc: NatsConnection, timeoutMs = 2_000): Promise<TokenStore> {
  const js = jetstream(nc, { timeout: timeoutMs });
  const jsm = await jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false });
  await ensureBucket(jsm);

  async function read(since?: TokensSeen): Promise<TokensSeen> {
    const { created, state } = await jsm.streams.info(stream);
    const isSame = since?.made === created && since.lastSeq <= state.last_seq;
    if (isSame && since.lastSeq === state.last_seq && since.entries.size === state.messages) return since;
    const next = { made: created, lastSeq: state.last_seq };
    const known = isSame ? since : { lastSeq: 0, entries: new Map<string, TokenEntry>() };
    const entries = await entriesAfter(known.lastSeq, state.last_seq, known.entries);
    // A key that went without a trace: what is there has to be read from the beginning.
    const isWhole = known.lastSeq === 0 || entries.size === state.messages;
    return { ...next, entries: isWhole ? entries : await entriesAfter(0, state.last_seq, new Map()) };
  }

  /** From the leader: a direct get could be answered by a replica that does not know of a revocation yet. */
  async function entriesAfter(afterSeq: number, lastSeq: number, known: ReadonlyMap<string, TokenEntry>) {
    const entries = new Map(known);
    for (let seq = afterSeq; seq < lastSeq; ) {
      const query = { seq: seq + 1, next_by_subj: everyKey };
      const message = await jsm.streams.getMessage(stream, query);
      if (message === null) break;
      seq = message.seq;
      const hash = message.subject.slice(everyKey.length - 1);
      entries.set(hash, { seq, record: recordIn(message.data) });
    }
    return entries;
  }

  async function remove(hash: string): Promise<void> {
    const h = headers();
    h.set("KV-Operation", "DEL");
    await js.publish(subjectOf(hash), "", { headers: h });
  }

  return {
    read,
    async putBack(kept) {
      const { entries } = await read();
      let [added, stayRevoked] = [0, 0];
      for (const [hash, record] of Object.entries(kept)) {
        const there = entries.get(hash);
        if (record === null) {
          if (there === undefined || there.record !== undefined) await remove(hash);
        } else if (there === undefined) {
          await js.publish(subjectOf(hash), JSON.stringify(record), { expect: { lastSubjectSequence: 0 } });
          added++;
        } else if (there.record === undefined) stayRevoked++;
      }
      return { added, stayRevoked };
    },
    async create({ hash, record }) {
      await js.publish(subjectOf(hash), JSON.stringify(record), { expect: { lastSubjectSequence: 0 } });
    },
    async list() {
      const { entries } = await read();
      const records = [...entries.values()].flatMap(({ record }) => (record === undefined ? [] : [record]));
      return records.sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt));
    },
    async revoke(id, workspace) {
      const { entries } = await read();
      for (const [hash, { record }] of entries) {
        if (record?.id !== id || (workspace !== undefined && record.workspace !== workspace)) continue;
        await remove(hash);
        return record;
      }
      return undefined;
    },
  };
}

function subjectOf(hash: string): string {
  return `$KV.${bucket}.${hash}`;
}

/** As NATS' own programs make a bucket. */
async function ensureBucket(jsm: JetStreamManager): Promise<void> {
  try {
    await jsm.streams.add({
      name: stream,
      subjects: [everyKey],
      max_msgs_per_subject: 1,
      discard: "new",
      storage: "file",
      allow_direct: true,
      allow_rollup_hdrs: true,
      deny_delete: true,
    });
  } catch (cause) {
    // It is there, maybe with settings of its operator's own, such as replicas.
    if (!(cause instanceof JetStreamApiError && cause.code === streamExists)) throw cause;
  }
}

const streamExists = 10058;

function recordIn(data: Uint8Array): TokenRecord | undefined {
  try {
    return tokenRecord.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined; // revoked, or written by somebody else: it lets nobody in
  }
}
