import { delay } from "@tapedeck/shared/sync/delay";
import type { LeaseBucket } from "./lease-bucket.ts";

const retryMs = 250;

type ProcessLeaseOptions = {
  readonly isNeeded: () => boolean;
  /** A renewal has succeeded after one that failed: others may have taken what this process holds. */
  readonly onReturn: () => void;
};

/** The lease of this process, which is renewed while it is needed. */
export class ProcessLease implements AsyncDisposable {
  readonly #bucket: LeaseBucket;
  readonly #renewMs: number;
  readonly #options: ProcessLeaseOptions;
  readonly #stop = new AbortController();
  #begun: Promise<void> | undefined;
  #keeping: Promise<void> = Promise.resolve();

  constructor(bucket: LeaseBucket, renewMs: number, options: ProcessLeaseOptions) {
    this.#bucket = bucket;
    this.#renewMs = renewMs;
    this.#options = options;
  }

  /** Resolves when everybody can see that this process lives. Rejects when NATS can't be asked. */
  begin(): Promise<void> {
    this.#begun ??= this.#begin();
    return this.#begun;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#begun?.catch(() => {});
    await this.#keeping;
  }

  async #begin(): Promise<void> {
    await this.#keeping;
    try {
      await this.#bucket.renewProcess();
    } catch (cause) {
      this.#begun = undefined;
      throw cause;
    }
    this.#keeping = this.#keep();
  }

  async #keep(): Promise<void> {
    const { isNeeded, onReturn } = this.#options;
    await delay(this.#renewMs, this.#stop.signal);
    for (let hasFailed = false; isNeeded() && !this.#stop.signal.aborted; ) {
      const failed = await this.#bucket.renewProcess().then(
        () => false,
        () => true,
      );
      if (hasFailed && !failed) onReturn();
      hasFailed = failed;
      await delay(failed ? retryMs : this.#renewMs, this.#stop.signal);
    }
    this.#begun = undefined;
    // Without it the process counts as dead when the time has run out.
    await this.#bucket.endProcess().catch(() => {});
  }
}
