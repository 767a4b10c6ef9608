import { delay } from "@tapedeck/shared/sync/delay";
import type { LeaseBucket, Leased, LeaseTimes, Owner } from "./lease-bucket.ts";

/** The waits before the checks of a write that was heard: it is heard before the bucket has it, and may be refused. */
const storedMs = [0, 250, 1_000, 4_000];

export type HeldLeaseOptions = {
  readonly bucket: LeaseBucket;
  readonly source: Leased;
  readonly owner: Owner;
  /** The revision at which the bucket names the owner. */
  readonly revision: number;
  readonly times: LeaseTimes;
};

/** A source that this process has, until it is released or lost. */
export class HeldLease {
  readonly owner: Owner;
  /** How many share it in this process. */
  holders = 0;
  readonly #options: HeldLeaseOptions;
  readonly #end = new AbortController();
  readonly #lost = new AbortController();
  #checking: Promise<void> = Promise.resolve();
  #revision: number;

  constructor(options: HeldLeaseOptions) {
    this.owner = options.owner;
    this.#options = options;
    this.#revision = options.revision;
  }

  /** Aborts when another owner has the source. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  lose(): void {
    this.#end.abort();
    this.#lost.abort();
  }

  /** Somebody writes another owner. */
  async overheard(): Promise<void> {
    for (const wait of storedMs) {
      await delay(wait, this.#end.signal);
      await this.check().catch(() => {});
    }
  }

  /** Checks whether this process still has it. Rejects when NATS can't be asked. */
  check(): Promise<void> {
    const checked = this.#checking.then(() => this.#check());
    this.#checking = checked.catch(() => {});
    return checked;
  }

  /** Rejects when NATS can't be asked, and may then be called again. */
  async release(): Promise<void> {
    this.#end.abort();
    await this.#checking;
    const { bucket, source, owner } = this.#options;
    await bucket.clear(source, owner.lease, this.#revision);
  }

  async #check(): Promise<void> {
    const { bucket, source, times } = this.#options;
    if (this.#end.signal.aborted) return;
    const { owner, revision, writtenAt } = await bucket.read(source);
    if (owner !== undefined && owner.lease !== this.owner.lease) return this.lose();
    const isFresh = owner !== undefined && Date.now() - (writtenAt?.getTime() ?? 0) < times.entryMs / 2;
    const isDone = isFresh || this.#end.signal.aborted;
    this.#revision = (isDone ? undefined : await bucket.write(source, this.owner, revision)) ?? revision;
  }
}
