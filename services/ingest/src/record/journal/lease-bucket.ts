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
import { asciiName, nameOfAscii, type SourceName } from "@tapedeck/shared/source";
import { headers, type NatsConnection } from "nats";

const bucket = "TAPEDECK_OWNERS";
/** How long the bucket keeps that a lease has ended. */
const endMs = 60_000;

/** What only one owner may have at a time: a source, an imported session, the check of a whole log. */
export type Leased = SourceName | `import/${string}` | `log-check/${string}` | "erasures" | "removals" | "retention";

/** `yields`: it only examines the source, and gives way to any tap. */
export type Owner = { readonly ingest: string; readonly tap: string; readonly lease: string; readonly yields?: true };

/** The NATS bucket of all leases. A write names the revision that it follows, so that one writer wins. */
export class LeaseBucket {
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;
  readonly #ttlMs: number;

  private constructor(js: JetStreamClient, jsm: JetStreamManager, ttlMs: number) {
    this.#js = js;
    this.#jsm = jsm;
    this.#ttlMs = ttlMs;
  }

  /** The connection stays the caller's. Rejects when the bucket can't be had. */
  static async open(nc: NatsConnection, ttlMs: number, timeoutMs: number): Promise<LeaseBucket> {
    const js = jetstream(nc, { timeout: timeoutMs, checkAPI: false });
    const jsm = await jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false });
    await new Kvm(js).create(bucket, { history: 1, markerTTL: endMs, replicas: await replicasOfLogs(jsm) });
    await replicateAsLogs(jsm, `KV_${bucket}`);
    return new LeaseBucket(js, jsm, ttlMs);
  }

  /** Read from the leader; undefined without an owner. */
  async ownerOf(source: Leased): Promise<{ readonly owner: Owner | undefined; readonly revision: number }> {
    const last = await this.#jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: subjectOf(source) });
    const isFree = last === null || last.data.byteLength === 0;
    return { owner: isFree ? undefined : (last.json() as Owner), revision: last?.seq ?? 0 };
  }

  /** The sources of a workspace that have an owner who does not only examine them. */
  async ownedIn(workspace: string): Promise<readonly SourceName[]> {
    const { state } = await infoOfLeader(this.#jsm, `KV_${bucket}`, { subjects_filter: `$KV.${bucket}.*` });
    const root = `$KV.${bucket}.`;
    const sources = Object.keys(state.subjects ?? {})
      .filter((subject) => subject.startsWith(`${root}${asciiName(workspace)}/`))
      .map((subject) => nameOfAscii(subject.slice(root.length)) as SourceName);
    const owned: SourceName[] = [];
    for (const source of sources) {
      const { owner } = await this.ownerOf(source);
      if (owner !== undefined && owner.yields !== true) owned.push(source);
    }
    return owned;
  }

  /** Undefined when the revision is not the last one. */
  async write(source: Leased, owner: Owner, revision: number): Promise<number | undefined> {
    const h = headers();
    h.set("Nats-TTL", `${this.#ttlMs / 1_000}s`);
    h.set("Nats-Expected-Last-Subject-Sequence", String(revision));
    try {
      return (await this.#js.publish(subjectOf(source), JSON.stringify(owner), { headers: h })).seq;
    } catch (cause) {
      if (cause instanceof JetStreamApiError && wrongRevision.includes(cause.code)) return undefined;
      throw cause;
    }
  }

  async clear(source: Leased, revision: number): Promise<void> {
    const h = headers();
    h.set("KV-Operation", "DEL");
    // Nobody needs the end of a lease for longer than a lease: imports, which have one each, would leave one each for ever.
    h.set("Nats-TTL", `${endMs / 1_000}s`);
    h.set("Nats-Expected-Last-Subject-Sequence", String(revision));
    await this.#js.publish(subjectOf(source), "", { headers: h });
  }
}

const subjectOf = (source: Leased) => `$KV.${bucket}.${asciiName(source)}`;

const wrongRevision: readonly number[] = [10071, 10164];
