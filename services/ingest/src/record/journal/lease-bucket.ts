import {
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { infoOfLeader } from "@tapedeck/shared/log/cluster/leader-info";
import { replicasOfLogs, replicateAsLogs } from "@tapedeck/shared/log/cluster/replicas";
import { asciiName, nameOfAscii, parseSourceName, type SourceName, sourceParts } from "@tapedeck/shared/source";
import { headers, type NatsConnection, type Subscription } from "nats";
import { ulid } from "ulid";

const bucket = "TAPEDECK_OWNERS";
const root = `$KV.${bucket}.`;
/** How long the bucket keeps that a lease has ended. */
const endMs = 60_000;

export type LeaseTimes = {
  /** After this time without a renewal a process counts as dead, and its sources are free. Whole seconds. */
  readonly ttlMs: number;
  readonly renewMs: number;
  /** How long a source's key stays, so that those of dead processes do not stay for ever. Whole seconds. */
  readonly entryMs: number;
  /** How often a holder checks its source at least, whatever it hears. */
  readonly checkMs: number;
  /** How often a standby checks. */
  readonly pollMs: number;
  /** How long NATS may take to answer. */
  readonly timeoutMs: number;
};

/** What only one owner may have at a time: a source, an imported session, the check of a whole log. */
export type Leased = SourceName | `import/${string}` | `log-check/${string}` | "erasures" | "removals" | "retention";

/** `yields`: it only examines the source, and gives way to any tap. */
export type Owner = {
  /** It is the owner only while this process lives. */
  readonly process: string;
  readonly tap: string;
  readonly lease: string;
  readonly yields?: true;
};

type Entry = { readonly owner: Owner | undefined; readonly revision: number; readonly writtenAt?: Date | undefined };

/** The NATS bucket of all leases: a key for each process that lives, and one for each source that names its owner. */
export class LeaseBucket {
  /** This process. */
  readonly process = ulid();
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;
  readonly #ingest: string;
  readonly #times: LeaseTimes;

  private constructor(js: JetStreamClient, jsm: JetStreamManager, ingest: string, times: LeaseTimes) {
    this.#js = js;
    this.#jsm = jsm;
    this.#ingest = ingest;
    this.#times = times;
  }

  /** The connection stays the caller's. Rejects when the bucket can't be had. */
  static async open(nc: NatsConnection, ingest: string, times: LeaseTimes): Promise<LeaseBucket> {
    const { timeoutMs: timeout } = times;
    const js = jetstream(nc, { timeout, checkAPI: false });
    const jsm = await jetstreamManager(nc, { timeout, checkAPI: false });
    await new Kvm(js).create(bucket, { history: 1, markerTTL: endMs, replicas: await replicasOfLogs(jsm) });
    await replicateAsLogs(jsm, `KV_${bucket}`);
    return new LeaseBucket(js, jsm, ingest, times);
  }

  /** What the leader has of a source. The owner's process may be dead. */
  async read(source: Leased): Promise<Entry> {
    const last = await this.#last(source);
    const isFree = last === null || last.data.byteLength === 0;
    return { owner: isFree ? undefined : (last.json() as Owner), revision: last?.seq ?? 0, writtenAt: last?.time };
  }

  /** The owner is undefined when its process is dead. This process lives, whatever the bucket says. */
  async ownerOf(source: Leased): Promise<Entry> {
    const entry = await this.read(source);
    const { owner } = entry;
    if (owner === undefined || owner.process === this.process) return entry;
    const last = await this.#last(`process/${owner.process}`);
    return (last?.data.byteLength ?? 0) > 0 ? entry : { ...entry, owner: undefined };
  }

  /** The sources of a workspace that have an owner who does not only examine them. */
  async ownedIn(workspace: string): Promise<readonly SourceName[]> {
    const { state } = await infoOfLeader(this.#jsm, `KV_${bucket}`, { subjects_filter: `${root}*` });
    const owned: SourceName[] = [];
    for (const subject of Object.keys(state.subjects ?? {})) {
      const source = parseSourceName(nameOf(subject));
      if (source === undefined || sourceParts(source).workspace !== workspace) continue;
      const { owner } = await this.ownerOf(source);
      if (owner !== undefined && owner.yields !== true) owned.push(source);
    }
    return owned;
  }

  /** Undefined when the revision is not the last one. */
  write(source: Leased, owner: Owner, revision: number): Promise<number | undefined> {
    return this.#put(source, JSON.stringify(owner), { ttlMs: this.#times.entryMs, revision });
  }

  /** Clears the key of a source, unless another lease has it. The revision is the one at which this lease is thought to have it. */
  async clear(source: Leased, lease: string, revision?: number): Promise<void> {
    for (let last = revision; ; ) {
      if (last !== undefined && (await this.#put(source, "", { ttlMs: endMs, revision: last })) !== undefined) return;
      const entry = await this.read(source);
      if (entry.owner?.lease !== lease) return;
      last = entry.revision;
    }
  }

  /** Everybody sees that this process lives, for the time of a lease. Nobody else writes this key. */
  async renewProcess(): Promise<void> {
    const text = JSON.stringify({ ingest: this.#ingest });
    await this.#put(`process/${this.process}`, text, { ttlMs: this.#times.ttlMs });
  }

  async endProcess(): Promise<void> {
    await this.#put(`process/${this.process}`, "", { ttlMs: endMs });
  }

  /** Calls this with each owner that somebody writes: before the bucket has it, and also if the bucket refuses it. */
  watch(
    nc: NatsConnection,
    onOwner: (source: Leased, owner: Owner) => void,
    onRefused: (err: Error) => void,
  ): Subscription {
    return nc.subscribe(`${root}*`, {
      callback(err, message) {
        if (err) onRefused(err);
        else if (message.data.byteLength > 0) onOwner(nameOf(message.subject) as Leased, message.json());
      },
    });
  }

  #last(key: string) {
    return this.#jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: subjectOf(key) });
  }

  /** Without a text the key is deleted. Undefined when the revision is not the last one. */
  async #put(key: string, text: string, { ttlMs, revision }: PutOptions): Promise<number | undefined> {
    const h = headers();
    if (text === "") h.set("KV-Operation", "DEL");
    h.set("Nats-TTL", `${ttlMs / 1_000}s`);
    if (revision !== undefined) h.set("Nats-Expected-Last-Subject-Sequence", String(revision));
    try {
      return (await this.#js.publish(subjectOf(key), text, { headers: h })).seq;
    } catch (cause) {
      if (cause instanceof JetStreamApiError && wrongRevision.includes(cause.code)) return undefined;
      throw cause;
    }
  }
}

type PutOptions = { readonly ttlMs: number; readonly revision?: number };

const subjectOf = (key: string) => `${root}${asciiName(key)}`;
const nameOf = (subject: string) => nameOfAscii(subject.slice(root.length));

const wrongRevision: readonly number[] = [10071, 10164];
