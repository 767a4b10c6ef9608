import {
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { headers, type NatsConnection } from "nats";
import { z } from "zod";
import { infoOfLeader } from "../log/cluster/leader-info.ts";
import { bucketNames, ensureBucket } from "../log/key-value-bucket.ts";
import { type MadeToken, type TokenRecord, tokenRecord } from "./token.ts";

const bucket = "TAPEDECK_TOKENS";
const { stream, subject: subjectOf } = bucketNames(bucket);
const everyKey = subjectOf(">");

/** The tokens of a Tapedeck, in the NATS KV bucket `TAPEDECK_TOKENS`: key SHA-256 of the text in hex, value the record. */
export type TokenStore = {
  create(token: MadeToken): Promise<void>;
  /** Newest first, including expired ones. */
  list(): Promise<readonly TokenRecord[]>;
  /**
   * Stores a token in place of another, which continues as `old` defines. Returns undefined and stores nothing if the
   * other was revoked or renewed in the meantime.
   */
  renew(hash: string, renewal: { readonly made: MadeToken; readonly old: TokenRecord }): Promise<MadeToken | undefined>;
  /** Revokes a token, and those that renew it or that it renews. The revoked token; undefined if there is no token of that id (in that workspace, if one is given). */
  revoke(id: string, workspace?: string): Promise<TokenRecord | undefined>;
  /**
   * Puts back the tokens of a backup. The bucket's knowledge of a token wins, a revocation above all; a revocation that
   * only the backup knows of holds too. Returns how many were added, and how many stay revoked although the backup had
   * them.
   */
  putBack(backup: TokenBackup): Promise<{ readonly added: number; readonly stayRevoked: number }>;
  /** The present contents, read from the bucket's leader; costs one request if nothing has changed since. */
  read(since?: TokenSnapshot): Promise<TokenSnapshot>;
};

/** The bucket's contents by hash; null: revoked. */
export type TokenBackup = Readonly<Record<string, TokenRecord | null>>;

/** The tokens of a backup, by the SHA-256 of each. */
export const tokenBackup = z.record(z.string().regex(/^[0-9a-f]{64}$/), tokenRecord.nullable());

/** The stored tokens in the form of a backup. */
export function backupOf({ entries }: Pick<TokenSnapshot, "entries">): TokenBackup {
  return Object.fromEntries([...entries].map(([hash, { record }]) => [hash, record ?? null]));
}

/** The contents of the bucket at a moment. */
export type TokenSnapshot = {
  /** When the bucket was created: it identifies the bucket. */
  readonly made: string;
  readonly lastSeq: number;
  /** By hash; without a record if the token was revoked, or the value is not a record. */
  readonly entries: ReadonlyMap<string, TokenEntry>;
};

/** A record of the store; undefined: the token was removed. */
export type TokenEntry = { readonly seq: number; readonly record: TokenRecord | undefined };

/** Creates the bucket if it is missing. Rejects when NATS can't be asked. The connection stays the caller's. */
export async function openTokenStore(nc: NatsConnection, timeoutMs = 2_000): Promise<TokenStore> {
  const jsm = await jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false });
  await ensureBucket(jsm, bucket);
  return new TokenBucket(jetstream(nc, { timeout: timeoutMs }), jsm);
}

class TokenBucket implements TokenStore {
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;

  constructor(js: JetStreamClient, jsm: JetStreamManager) {
    this.#js = js;
    this.#jsm = jsm;
  }

  async read(since?: TokenSnapshot): Promise<TokenSnapshot> {
    const { created, state } = await infoOfLeader(this.#jsm, stream);
    const isSame = since?.made === created && since.lastSeq <= state.last_seq;
    if (isSame && since.lastSeq === state.last_seq && since.entries.size === state.messages) return since;
    const next = { made: created, lastSeq: state.last_seq };
    const known = isSame ? since : { lastSeq: 0, entries: new Map<string, TokenEntry>() };
    const entries = await this.#entriesAfter(known.lastSeq, state.last_seq, known.entries);
    // Fewer messages than entries: a key vanished without a trace, so everything is read again.
    const isWhole = known.lastSeq === 0 || entries.size === state.messages;
    return { ...next, entries: isWhole ? entries : await this.#entriesAfter(0, state.last_seq, new Map()) };
  }

  async putBack(backup: TokenBackup): Promise<{ readonly added: number; readonly stayRevoked: number }> {
    const { entries } = await this.read();
    let [added, stayRevoked] = [0, 0];
    for (const [hash, record] of Object.entries(backup)) {
      const current = entries.get(hash);
      if (record === null) {
        if (current === undefined || current.record !== undefined) await this.#remove(hash);
      } else if (current === undefined) {
        await this.#add(hash, record);
        added++;
      } else if (current.record === undefined) stayRevoked++;
    }
    return { added, stayRevoked };
  }

  async create({ hash, record }: MadeToken): Promise<void> {
    await this.#add(hash, record);
  }

  async list(): Promise<readonly TokenRecord[]> {
    const { entries } = await this.read();
    const records = [...entries.values()].flatMap(({ record }) => (record === undefined ? [] : [record]));
    return records.sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt));
  }

  async revoke(id: string, workspace?: string): Promise<TokenRecord | undefined> {
    let revoked: TokenRecord | undefined;
    // It may be renewed while it is revoked: the bucket is read again until it has none of that id.
    for (;;) {
      const { entries } = await this.read();
      const found = [...entries].filter(
        ([, { record }]) => record?.id === id && (workspace === undefined || record.workspace === workspace),
      );
      if (found.length === 0) return revoked;
      for (const [hash, { record }] of found) {
        await this.#remove(hash);
        revoked = record;
      }
    }
  }

  async renew(hash: string, { made, old }: { readonly made: MadeToken; readonly old: TokenRecord }) {
    const entry = (await this.read()).entries.get(hash);
    // One that was renewed is not renewable any more.
    if (entry?.record?.renewable !== true) return undefined;
    await this.#add(made.hash, made.record);
    try {
      await this.#js.publish(subjectOf(hash), JSON.stringify(old), { expect: { lastSubjectSequence: entry.seq } });
      return made;
    } catch (cause) {
      await this.#remove(made.hash);
      if (cause instanceof JetStreamApiError && cause.code === wrongLastSequence) return undefined;
      throw cause;
    }
  }

  /** Asks the leader: a direct get could be answered by a replica that does not know of a revocation yet. */
  async #entriesAfter(afterSeq: number, lastSeq: number, known: ReadonlyMap<string, TokenEntry>) {
    const entries = new Map(known);
    for (let seq = afterSeq; seq < lastSeq; ) {
      const query = { seq: seq + 1, next_by_subj: everyKey };
      const message = await this.#jsm.streams.getMessage(stream, query);
      if (message === null) break;
      seq = message.seq;
      const hash = message.subject.slice(everyKey.length - 1);
      entries.set(hash, { seq, record: recordIn(message.data) });
    }
    return entries;
  }

  async #add(hash: string, record: TokenRecord): Promise<void> {
    await this.#js.publish(subjectOf(hash), JSON.stringify(record), { expect: { lastSubjectSequence: 0 } });
  }

  async #remove(hash: string): Promise<void> {
    const h = headers();
    h.set("KV-Operation", "DEL");
    await this.#js.publish(subjectOf(hash), "", { headers: h });
  }
}

const wrongLastSequence = 10071;

function recordIn(data: Uint8Array): TokenRecord | undefined {
  try {
    return tokenRecord.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined; // revoked, or written by another program: it is not a token
  }
}
