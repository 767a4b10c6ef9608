import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { NatsConnection } from "nats";
import { ulid } from "ulid";
import { HeldLease } from "./held-lease.ts";
import { LeaseBucket, type Leased, type Owner } from "./lease-bucket.ts";

/** How long a lease holds, and how often it is renewed. */
export type LeaseTimes = {
  /** After this time without a renewal the source is free. Whole seconds. */
  readonly ttlMs: number;
  readonly renewMs: number;
  /** How often a standby checks. */
  readonly pollMs: number;
  /** How long NATS may take to answer. */
  readonly timeoutMs: number;
};

const defaultTimes: LeaseTimes = { ttlMs: 6_000, renewMs: 2_000, pollMs: 1_000, timeoutMs: 2_000 };
/** Says that this process dials a source for one tap. It does not decide who writes: the log's expectations do that. */
export type Lease = AsyncDisposable & {
  /** Aborts when another owner has the source. Not when NATS is away: then it cannot be taken. */
  readonly lost: AbortSignal;
};

export type TakeOptions = { readonly yields?: boolean };

/** The leases of sources. */
export type Leases = AsyncDisposable & {
  /**
   * Takes a source for a tap, or gives undefined when another tap has it. The same tap takes it over at once, from a dead
   * process or a live one; in this process it is shared. Rejects when NATS can't be asked. A lease that yields is lost to
   * any tap: an examination of a source must not look like a tap that records it.
   */
  take(source: Leased, tap: string, options?: TakeOptions): Promise<Lease | undefined>;
  /** Resolves when the source has no owner that it would not yield to, or with the signal. */
  freed(source: SourceName, signal: AbortSignal): Promise<void>;
  /** The sources of a workspace that somebody records. Rejects when NATS can't be asked. */
  ownedIn(workspace: string): Promise<readonly SourceName[]>;
};

/** The connection stays the caller's. Rejects when the bucket can't be had. */
export async function openLeases(nc: NatsConnection, ingest: string, times: Partial<LeaseTimes> = {}): Promise<Leases> {
  const all = { ...defaultTimes, ...times };
  return new SharedLeases(await LeaseBucket.open(nc, all.ttlMs, all.timeoutMs), ingest, all);
}

class SharedLeases implements Leases {
  readonly #bucket: LeaseBucket;
  readonly #ingest: string;
  readonly #times: LeaseTimes;
  readonly #held = new Map<Leased, Promise<HeldLease | undefined>>();

  constructor(bucket: LeaseBucket, ingest: string, times: LeaseTimes) {
    this.#bucket = bucket;
    this.#ingest = ingest;
    this.#times = times;
  }

  async take(source: Leased, tap: string, { yields = false }: TakeOptions = {}): Promise<Lease | undefined> {
    for (;;) {
      const shared = this.#held.get(source);
      const held = await shared?.catch(() => undefined);
      if (held !== undefined && held.holders > 0 && !held.lost.aborted) {
        if (held.tap === tap) return this.#share(source, held);
        if (yields || !held.yields) return undefined;
      }
      // Another call may have begun to take it in the meantime.
      if (this.#held.get(source) === shared) return await this.#takeNew(source, tap, yields);
    }
  }

  async freed(source: SourceName, signal: AbortSignal): Promise<void> {
    // Twice in a row: after an outage of NATS the holder comes back and renews, and that is its right.
    for (let free = 0; free < 2 && !signal.aborted; ) {
      const isFree = await this.#bucket.ownerOf(source).then(
        ({ owner }) => owner === undefined || owner.yields === true,
        () => false,
      );
      free = isFree ? free + 1 : 0;
      if (free < 2) await delay(this.#times.pollMs, signal);
    }
  }

  ownedIn(workspace: string): Promise<readonly SourceName[]> {
    return this.#bucket.ownedIn(workspace);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const leases = await Promise.all([...this.#held.values()].map((lease) => lease.catch(() => undefined)));
    this.#held.clear();
    await Promise.all(leases.map((lease) => lease?.release()));
  }

  async #takeNew(source: Leased, tap: string, yields: boolean): Promise<Lease | undefined> {
    const taking = this.#acquire(source, tap, yields).then((taken) => {
      if (taken !== undefined) taken.holders++;
      return taken;
    });
    this.#held.set(source, taking);
    let taken: HeldLease | undefined;
    try {
      taken = await taking;
    } finally {
      if (taken === undefined && this.#held.get(source) === taking) this.#held.delete(source);
    }
    if (taken === undefined) return undefined;
    const mine = this.#share(source, taken);
    taken.holders--;
    return mine;
  }

  async #acquire(source: Leased, tap: string, yields: boolean): Promise<HeldLease | undefined> {
    const mine: Owner = { ingest: this.#ingest, tap, lease: ulid(), ...(yields && { yields }) };
    for (;;) {
      const { owner, revision } = await this.#bucket.ownerOf(source);
      if (owner?.lease === mine.lease) return this.#hold(source, mine, revision);
      if (owner !== undefined && owner.tap !== tap && (yields || owner.yields !== true)) return undefined;
      const written = await this.#bucket.write(source, mine, revision);
      if (written !== undefined) return this.#hold(source, mine, written);
    }
  }

  #hold(source: Leased, owner: Owner, revision: number): HeldLease {
    return new HeldLease({ bucket: this.#bucket, source, owner, revision, renewMs: this.#times.renewMs });
  }

  #share(source: Leased, held: HeldLease): Lease {
    held.holders++;
    let left: Promise<void> | undefined;
    return {
      lost: held.lost,
      [Symbol.asyncDispose]: () => {
        left ??= this.#leave(source, held);
        return left;
      },
    };
  }

  async #leave(source: Leased, held: HeldLease): Promise<void> {
    held.holders--;
    if (held.holders > 0) return;
    const current = this.#held.get(source);
    if ((await current) === held && this.#held.get(source) === current) this.#held.delete(source);
    await held.release();
  }
}

/** Releases all that were to be taken, together, also when one of them could not be. */
export function releasing(leases: readonly Promise<Lease | undefined>[]): AsyncDisposable {
  // A caller that waits for them hears why.
  const settled = Promise.allSettled(leases);
  return {
    async [Symbol.asyncDispose]() {
      const taken = (await settled).map((one) => (one.status === "fulfilled" ? one.value : undefined));
      await Promise.all(taken.map((lease) => lease?.[Symbol.asyncDispose]()));
    },
  };
}
