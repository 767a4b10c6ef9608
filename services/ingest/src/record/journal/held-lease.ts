import { delay } from "@tapedeck/shared/sync/delay";
import type { LeaseBucket, Leased, Owner } from "./lease-bucket.ts";

const retryMs = 250;

/** Each renewal at another time, so that leases stay apart, and none later than asked. `random`: from 0 to below 1. */
export const renewalWait = (renewMs: number, random = Math.random()): number => renewMs * (0.5 + random / 2);

export type HeldLeaseOptions = {
  readonly bucket: LeaseBucket;
  readonly source: Leased;
  readonly owner: Owner;
  /** The revision at which the bucket names the owner. */
  readonly revision: number;
  readonly renewMs: number;
};

/** A lease that this process has, which it renews until it is released or lost. */
export class HeldLease {
  readonly tap: string;
  readonly yields: boolean;
  /** How many share it in this process. */
  holders = 0;
  readonly #options: HeldLeaseOptions;
  readonly #stop = new AbortController();
  readonly #lost = new AbortController();
  readonly #renewing: Promise<void>;
  #revision: number;

  constructor(options: HeldLeaseOptions) {
    this.tap = options.owner.tap;
    this.yields = options.owner.yields === true;
    this.#options = options;
    this.#revision = options.revision;
    this.#renewing = this.#keep();
  }

  /** Aborts when another owner has the source. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async release(): Promise<void> {
    this.#stop.abort();
    await this.#renewing;
    if (this.lost.aborted) return;
    const { bucket, source } = this.#options;
    // Without it the source is free when the time has run out.
    await bucket.clear(source, this.#revision).catch(() => {});
  }

  async #keep(): Promise<void> {
    const { renewMs } = this.#options;
    // Leases that are taken together, such as at a start, should not be renewed together.
    let wait = renewMs * Math.random();
    while (!this.lost.aborted) {
      await delay(wait, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      wait = await this.#renew().then(
        () => renewalWait(renewMs),
        () => retryMs,
      );
    }
  }

  /** A renewal whose answer was lost has moved the revision on without our knowing. */
  async #renew(): Promise<void> {
    const { bucket, source, owner } = this.#options;
    const written = await bucket.write(source, owner, this.#revision);
    if (written !== undefined) {
      this.#revision = written;
      return;
    }
    const now = await bucket.ownerOf(source);
    if (now.owner !== undefined && now.owner.lease !== owner.lease) this.#lost.abort();
    else this.#revision = now.revision;
  }
}
