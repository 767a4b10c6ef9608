// The leases: which tap dials a source. They do not decide who writes: the log's expectations do that.
//
//   bucket TAPEDECK_OWNERS
//     process/P1             lives             6 s, written every 2 s   ◀── process-lease.ts
//     acme/alice/shop/rkt    P1, tap, lease    12 h, written once       ◀── held-lease.ts
//              └── owned by the tap while process/P1 is there
//
// 1. A process writes its key before its first source, and renews it while it holds anything.
// 2. A source changes its owner by a write that names the revision that it follows: one of several writers wins.
// 3. A dead process holds nothing, whatever its sources' keys say. A process that comes back has what nobody took meanwhile.
// 4. A holder hears of each write of another owner, and asks the bucket's leader whether it is stored. What it may have missed is
//    checked after each time that the connection was lost or a renewal failed, and every few minutes.
// 5. While this process lives, no key names a lease of it that nobody holds: a key that could not be cleared is tried until it is.
// Why not a renewal for each source: docs/decisions/0067-one-lease-for-a-process.md.
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { retried } from "@tapedeck/shared/sync/retried";
import type { NatsConnection } from "nats";
import { ulid } from "ulid";
import { HeldLease } from "./held-lease.ts";
import { LeaseBucket, type Leased, type LeaseTimes, type Owner } from "./lease-bucket.ts";
import { ProcessLease } from "./process-lease.ts";

const defaultTimes: LeaseTimes = {
  ttlMs: 6_000,
  renewMs: 2_000,
  entryMs: 12 * 3_600_000,
  checkMs: 300_000,
  pollMs: 1_000,
  timeoutMs: 2_000,
};

/** Says that this process dials a source for one tap. */
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

type Warn = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** The connection stays the caller's. Rejects when the bucket can't be had. */
export async function openLeases(
  nc: NatsConnection,
  ingest: string,
  times: Partial<LeaseTimes> = {},
  warn: Warn = () => {},
): Promise<Leases> {
  const all = { ...defaultTimes, ...times };
  const leases = new SharedLeases(await LeaseBucket.open(nc, ingest, all), all);
  leases.watch(nc, warn);
  return leases;
}

class SharedLeases implements Leases {
  readonly #bucket: LeaseBucket;
  readonly #process: ProcessLease;
  readonly #times: LeaseTimes;
  readonly #held = new Map<Leased, Promise<HeldLease | undefined>>();
  readonly #closed = new AbortController();
  /** Rings when others may have been written without being heard. */
  readonly #missed = new Notifier();

  constructor(bucket: LeaseBucket, times: LeaseTimes) {
    this.#bucket = bucket;
    this.#times = times;
    this.#process = new ProcessLease(bucket, times.renewMs, {
      isNeeded: () => this.#held.size > 0,
      onReturn: () => this.#missed.ring(),
    });
  }

  watch(nc: NatsConnection, warn: Warn): void {
    const refused = (err: Error) =>
      warn("leases can't be watched: give this user of NATS its current permissions", { err });
    const subscription = this.#bucket.watch(nc, (source, owner) => void this.#heard(source, owner), refused);
    this.#closed.signal.addEventListener("abort", () => !nc.isClosed() && subscription.unsubscribe());
    this.#watchConnection(nc).catch(() => {});
    void this.#checkAll();
  }

  async take(source: Leased, tap: string, { yields = false }: TakeOptions = {}): Promise<Lease | undefined> {
    for (;;) {
      const shared = this.#held.get(source);
      const held = await shared?.catch(() => undefined);
      if (held !== undefined && held.holders > 0 && !held.lost.aborted) {
        if (held.owner.tap === tap) return this.#share(source, held);
        if (yields || held.owner.yields !== true) return undefined;
      }
      // Another call may have begun to take it in the meantime.
      if (this.#held.get(source) !== shared) continue;
      held?.lose();
      return await this.#takeNew(source, tap, yields);
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
    this.#closed.abort();
    this.#missed.ring();
    const leases = await Promise.all([...this.#held.values()].map((lease) => lease.catch(() => undefined)));
    this.#held.clear();
    // Without its process a source that could not be released is free.
    const released = leases.map((lease) => lease?.release().catch(() => {}));
    await Promise.all([...released, this.#process[Symbol.asyncDispose]()]);
  }

  async #heard(source: Leased, { lease }: Owner): Promise<void> {
    const held = await this.#held.get(source)?.catch(() => undefined);
    if (held !== undefined && held.owner.lease !== lease) await held.overheard();
  }

  async #watchConnection(nc: NatsConnection): Promise<void> {
    for await (const { type } of nc.status()) {
      if (this.#closed.signal.aborted) return;
      if (type === "reconnect") this.#missed.ring();
    }
  }

  /** When something may have been missed, and now and then: all together, because a timer for each would keep the process awake. */
  async #checkAll(): Promise<void> {
    const { signal } = this.#closed;
    for (let missed = this.#missed.next(); ; ) {
      const over = new AbortController();
      await Promise.race([missed, delay((this.#times.checkMs * (1 + Math.random())) / 2, over.signal)]);
      over.abort();
      missed = this.#missed.next();
      if (signal.aborted) return;
      for (const taking of this.#held.values()) {
        const held = await taking.catch(() => undefined);
        if (held !== undefined) await retried(() => held.check(), signal);
      }
    }
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
    const bucket = this.#bucket;
    const mine: Owner = { process: bucket.process, tap, lease: ulid(), ...(yields && { yields }) };
    await this.#process.begin();
    for (;;) {
      const { owner, revision } = await bucket.ownerOf(source);
      if (owner !== undefined && owner.tap !== tap && (yields || owner.yields !== true)) return undefined;
      const written = await bucket.write(source, mine, revision).catch((cause: unknown) => {
        void this.#forget(source, mine.lease);
        throw cause;
      });
      if (written === undefined) continue;
      return new HeldLease({ bucket, source, owner: mine, revision: written, times: this.#times });
    }
  }

  /** A write without an answer may have been stored, or be stored once the servers are in touch with each other again. */
  async #forget(source: Leased, lease: string): Promise<void> {
    for (const wait of [0, 60_000]) {
      await delay(wait, this.#closed.signal);
      await retried(() => this.#bucket.clear(source, lease), this.#closed.signal);
    }
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
    const isCurrent = (await current?.catch(() => undefined)) === held;
    if (isCurrent && this.#held.get(source) === current) this.#held.delete(source);
    await held.release().catch(() => void retried(() => held.release(), this.#closed.signal));
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
