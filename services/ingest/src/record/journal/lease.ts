import { JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { headers, type NatsConnection } from "nats";
import { ulid } from "ulid";

const bucket = "TAPEDECK_OWNERS";

export type LeaseTimes = {
  /** After this time without a renewal the source is free. Whole seconds. */
  readonly ttlMs: number;
  readonly renewMs: number;
  /** How often a standby looks. */
  readonly pollMs: number;
  /** How long NATS may take to answer. */
  readonly timeoutMs: number;
};

const usualTimes: LeaseTimes = { ttlMs: 6_000, renewMs: 2_000, pollMs: 1_000, timeoutMs: 2_000 };
const retryMs = 250;

/** Says that this process dials a source for one tap. It does not decide who writes: the log's expectations do that. */
export type Lease = AsyncDisposable & {
  /** Aborts when somebody else has the source. Not when NATS is away: then nobody can take it. */
  readonly lost: AbortSignal;
};

/** What only one may have at a time: a source, a session that is imported, the look through all of the log. */
export type Leased = SourceName | `import/${string}` | "log-check";

export type Leases = AsyncDisposable & {
  /**
   * Takes a source for a tap, or gives undefined when another tap has it. The same tap takes it over at once, from a dead
   * process or a live one; in this process it is shared. Rejects when NATS can't be asked.
   */
  take(source: Leased, tap: string): Promise<Lease | undefined>;
  /** Resolves when nobody has the source, or with the signal. */
  freed(source: SourceName, signal: AbortSignal): Promise<void>;
};

type Owner = { readonly ingest: string; readonly tap: string; readonly lease: string };

type Held = {
  readonly tap: string;
  readonly lost: AbortController;
  readonly release: () => Promise<void>;
  holders: number;
};

/** The connection stays the caller's. Rejects when the bucket can't be had. */
export async function openLeases(nc: NatsConnection, ingest: string, times: Partial<LeaseTimes> = {}): Promise<Leases> {
  const { ttlMs, renewMs, pollMs, timeoutMs } = { ...usualTimes, ...times };
  const js = jetstream(nc, { timeout: timeoutMs });
  const jsm = await jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false });
  await new Kvm(js).create(bucket, { history: 1, markerTTL: 60_000 });
  const held = new Map<Leased, Promise<Held | undefined>>();

  const subjectOf = (source: Leased) => `$KV.${bucket}.${source}`;

  /** Read from the leader; undefined when nobody has it. */
  async function ownerOf(source: Leased): Promise<{ readonly owner: Owner | undefined; readonly revision: number }> {
    const last = await jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: subjectOf(source) });
    const isGone = last === null || last.data.byteLength === 0;
    return { owner: isGone ? undefined : (last.json() as Owner), revision: last?.seq ?? 0 };
  }

  /** Undefined when the revision is not the last one. */
  async function write(source: Leased, owner: Owner, revision: number): Promise<number | undefined> {
    const h = headers();
    h.set("Nats-TTL", `${ttlMs / 1_000}s`);
    h.set("Nats-Expected-Last-Subject-Sequence", String(revision));
    try {
      return (await js.publish(subjectOf(source), JSON.stringify(owner), { headers: h })).seq;
    } catch (cause) {
      if (cause instanceof JetStreamApiError && wrongRevision.includes(cause.code)) return undefined;
      throw cause;
    }
  }

  async function acquire(source: Leased, tap: string): Promise<Held | undefined> {
    const mine: Owner = { ingest, tap, lease: ulid() };
    for (;;) {
      const { owner, revision } = await ownerOf(source);
      if (owner?.lease === mine.lease) return hold(source, mine, revision);
      if (owner !== undefined && owner.tap !== tap) return undefined;
      const written = await write(source, mine, revision);
      if (written !== undefined) return hold(source, mine, written);
    }
  }

  function hold(source: Leased, mine: Owner, first: number): Held {
    const stop = new AbortController();
    const lost = new AbortController();
    let revision = first;

    /** A renewal whose answer was lost has moved the revision on without our knowing. */
    async function renew(): Promise<void> {
      const written = await write(source, mine, revision);
      if (written !== undefined) {
        revision = written;
        return;
      }
      const now = await ownerOf(source);
      if (now.owner !== undefined && now.owner.lease !== mine.lease) lost.abort();
      else revision = now.revision;
    }

    async function keep(): Promise<void> {
      let wait = renewMs;
      while (!lost.signal.aborted) {
        await delay(wait, stop.signal);
        if (stop.signal.aborted) return;
        wait = await renew().then(
          () => renewMs,
          () => retryMs,
        );
      }
    }
    const kept = keep();

    const release = async () => {
      stop.abort();
      await kept;
      if (lost.signal.aborted) return;
      const h = headers();
      h.set("KV-Operation", "DEL");
      h.set("Nats-Expected-Last-Subject-Sequence", String(revision));
      // Without it the source is free when the time has run out.
      await js.publish(subjectOf(source), "", { headers: h }).catch(() => {});
    };
    return { tap: mine.tap, lost, release, holders: 0 };
  }

  async function leave(source: Leased, lease: Held): Promise<void> {
    lease.holders--;
    if (lease.holders > 0) return;
    const current = held.get(source);
    if ((await current) === lease && held.get(source) === current) held.delete(source);
    await lease.release();
  }

  return {
    async take(source, tap) {
      for (;;) {
        const shared = held.get(source);
        const lease = await shared?.catch(() => undefined);
        if (lease !== undefined && lease.holders > 0 && !lease.lost.signal.aborted) {
          if (lease.tap !== tap) return undefined;
          return leaseOf(source, lease);
        }
        // Another call may have begun to take it in the meantime.
        if (held.get(source) !== shared) continue;
        const taking = acquire(source, tap).then((taken) => {
          if (taken !== undefined) taken.holders++;
          return taken;
        });
        held.set(source, taking);
        let taken: Held | undefined;
        try {
          taken = await taking;
        } finally {
          if (taken === undefined && held.get(source) === taking) held.delete(source);
        }
        if (taken === undefined) return undefined;
        const mine = leaseOf(source, taken);
        taken.holders--;
        return mine;
      }
    },

    async freed(source, signal) {
      // Twice in a row: after an outage of NATS the holder comes back and renews, and that is its right.
      for (let free = 0; free < 2 && !signal.aborted; ) {
        const { owner } = await ownerOf(source).catch(() => ({ owner: "unknown" }));
        free = owner === undefined ? free + 1 : 0;
        if (free < 2) await delay(pollMs, signal);
      }
    },

    async [Symbol.asyncDispose]() {
      const leases = await Promise.all([...held.values()].map((lease) => lease.catch(() => undefined)));
      held.clear();
      await Promise.all(leases.map((lease) => lease?.release()));
    },
  };

  function leaseOf(source: Leased, lease: Held): Lease {
    lease.holders++;
    let left: Promise<void> | undefined;
    return {
      lost: lease.lost.signal,
      [Symbol.asyncDispose]: () => {
        left ??= leave(source, lease);
        return left;
      },
    };
  }
}

/** Releases all that were to be taken, together, also when one of them could not be. */
export function releasing(leases: readonly Promise<Lease | undefined>[]): AsyncDisposable {
  // Whoever waits for them hears why.
  const settled = Promise.allSettled(leases);
  return {
    async [Symbol.asyncDispose]() {
      const taken = (await settled).map((one) => (one.status === "fulfilled" ? one.value : undefined));
      await Promise.all(taken.map((lease) => lease?.[Symbol.asyncDispose]()));
    },
  };
}

const wrongRevision: readonly number[] = [10071, 10164];
