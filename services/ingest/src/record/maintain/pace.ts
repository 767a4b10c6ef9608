import { delay } from "@tapedeck/shared/sync/delay";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";

export type PaceOptions = {
  /** The part of the time that the work may take at least, above 0 and at most 1, however long recording takes. */
  readonly minShare: number;
  /** How long recording takes at the moment, in ms. */
  readonly recordingMs: () => number;
  /** The longest rest after a step. Default 2,000. */
  readonly maxRestMs?: number;
};

/** Recording that takes longer is taken to be delayed: a quarter of the 200 ms that maintenance may add to it. */
const delayedMs = 50;

/**
 * The pace of maintenance. Removals and checks use the same NATS, disk and processors as recording, so each does its work in
 * small steps, one at a time, and rests after each. Its share of the time begins at the least, grows while recording is quick,
 * up to all of the time where nothing is recorded, and is halved by each step that finds recording delayed.
 */
export class Pace {
  readonly #options: PaceOptions;
  readonly #turns = new Semaphore(1);
  #share: number;

  constructor(options: PaceOptions) {
    this.#options = options;
    this.#share = options.minShare;
  }

  /** The part of the time that the work takes at the moment. */
  get share(): number {
    return this.#share;
  }

  /** Does one step in its turn, and rests. Undefined if the signal aborted before its turn. Rejects as the step does. */
  async step<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const release = await this.#turns.acquire(signal);
    if (release === undefined) return undefined;
    const began = performance.now();
    try {
      return await work();
    } finally {
      await this.rest(performance.now() - began, signal);
      release();
    }
  }

  /** The same for a caller whose steps are not calls: `workedMs` is what its last step took. */
  async rest(workedMs: number, signal?: AbortSignal): Promise<void> {
    const { minShare, maxRestMs = 2_000, recordingMs } = this.#options;
    const isDelayed = recordingMs() > delayedMs;
    this.#share = isDelayed ? Math.max(minShare, this.#share / 2) : Math.min(1, this.#share * 1.05);
    const restMs = workedMs * (1 / this.#share - 1);
    if (restMs > 0) await delay(Math.min(restMs, maxRestMs), signal);
  }
}
