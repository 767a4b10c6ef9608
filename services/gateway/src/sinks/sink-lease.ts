import type { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { delay } from "@tapedeck/shared/sync/delay";
import { LinkedController } from "@tapedeck/shared/sync/linked-controller";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { SinkTimes } from "./delivery/times.ts";

export type SinkLeaseOptions = {
  /** Throws while NATS is away. */
  readonly store: () => Pick<SinkStore, "owner" | "own" | "disown">;
  /** This gateway. */
  readonly gateway: string;
  readonly times: Pick<SinkTimes, "leaseMs" | "renewMs" | "pollMs">;
  /** Called with each lease; resolves when nothing is done under it any more, soon after `lost` has aborted. */
  readonly hold: (lost: AbortSignal) => Promise<void>;
  /** Called when NATS is away, once until it is back. */
  readonly failed: (error: unknown) => void;
};

/** A holder gives its lease up so long before its end. */
const marginMs = 1_000;

/**
 * One gateway delivers all sinks: the one whose name the bucket has, for 6 s after each write. Another one takes the lease when it is
 * free. A holder whose writes fail stops before that. What a gateway that was stopped for longer still sends is only
 * a repetition, and it moves no cursor: each write of a cursor names the one before.
 */
export class SinkLease implements AsyncDisposable {
  readonly #options: SinkLeaseOptions;
  readonly #stop = new AbortController();
  readonly #freed = new Notifier();
  readonly #running: Promise<void>;
  #hasFailed = false;

  constructor(options: SinkLeaseOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** The lease may be free now. */
  freed(): void {
    this.#freed.ring();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#freed.ring();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { hold, times } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const freed = this.#freed.next();
      const sentAt = performance.now();
      const revision = await this.#taken();
      if (revision === undefined) {
        using over = new LinkedController(signal);
        await Promise.race([freed, delay(times.pollMs, over.signal)]);
        over.abort();
        continue;
      }
      const lease = new HeldLease(revision, sentAt, this.#options);
      const released = () => lease.lose();
      signal.addEventListener("abort", released);
      if (signal.aborted) released();
      await Promise.all([hold(lease.lost).catch(() => lease.lose()), lease.kept]);
      signal.removeEventListener("abort", released);
      await lease.release();
      await delay(times.pollMs, signal);
    }
  }

  /** The revision; undefined: another gateway has it, or NATS is away. */
  async #taken(): Promise<number | undefined> {
    try {
      const revision = await this.#take();
      this.#hasFailed = false;
      return revision;
    } catch (error) {
      if (!this.#hasFailed) this.#options.failed(error);
      this.#hasFailed = true;
      return undefined;
    }
  }

  /** The revision; undefined: another gateway has it. Rejects while NATS is away. */
  async #take(): Promise<number | undefined> {
    const { gateway, times } = this.#options;
    const store = this.#options.store();
    const { owner, revision } = await store.owner();
    if (owner !== undefined && owner !== gateway) return undefined;
    return store.own(gateway, { revision, ttlMs: times.leaseMs });
  }
}

/** A lease that is renewed until it is lost. */
class HeldLease {
  readonly kept: Promise<void>;
  readonly #options: SinkLeaseOptions;
  readonly #lost = new AbortController();
  #revision: number;
  #end: Timer;

  constructor(revision: number, sentAt: number, options: SinkLeaseOptions) {
    this.#options = options;
    this.#revision = revision;
    this.#end = this.#endOf(sentAt);
    this.kept = this.#keep();
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  lose(): void {
    stopTimer(this.#end);
    this.#lost.abort();
  }

  /** Lets others have it at once, if it is still this one. */
  async release(): Promise<void> {
    try {
      await this.#options.store().disown(this.#revision);
    } catch {
      // It is free when its time is over.
    }
  }

  async #keep(): Promise<void> {
    const { gateway, times } = this.#options;
    for (let waitMs = times.renewMs; ; ) {
      await delay(waitMs, this.lost);
      if (this.lost.aborted) return;
      const sentAt = performance.now();
      try {
        const store = this.#options.store();
        const renewed = await store.own(gateway, { revision: this.#revision, ttlMs: times.leaseMs });
        if (renewed !== undefined) {
          this.#revision = renewed;
          stopTimer(this.#end);
          this.#end = this.#endOf(sentAt);
        } else if (!(await this.#isOwn(store))) return this.lose();
        waitMs = times.renewMs;
      } catch {
        waitMs = times.renewMs / 8; // until its end comes
      }
    }
  }

  /** A renewal whose answer was lost has another revision. */
  async #isOwn(store: Pick<SinkStore, "owner">): Promise<boolean> {
    const { owner, revision } = await store.owner();
    if (owner !== this.#options.gateway) return false;
    this.#revision = revision;
    return true;
  }

  #endOf(sentAt: number): Timer {
    const leftMs = sentAt + this.#options.times.leaseMs - marginMs - performance.now();
    return startTimer(() => this.lose(), Math.max(0, leftMs)).unref();
  }
}
