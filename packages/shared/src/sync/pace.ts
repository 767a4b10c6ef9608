import { delay } from "./delay.ts";
import { Semaphore } from "./semaphore.ts";

export type PaceOptions = {
  /** The part of the time that the work may take, above 0 and at most 1. */
  readonly share: number;
  /** The longest rest after a step. Default 2,000. */
  readonly maxRestMs?: number;
};

/**
 * The pace of maintenance. Erasures, removals, checks, backups and rebuilds use the same NATS, disk and processors as
 * recording, so each does its work in small steps, one at a time, and rests after each for as long as its share demands. A
 * step that takes long, because the machine is busy, is followed by a long rest.
 */
export class Pace {
  readonly #share: number;
  readonly #maxRestMs: number;
  readonly #turns = new Semaphore(1);

  constructor({ share, maxRestMs = 2_000 }: PaceOptions) {
    this.#share = share;
    this.#maxRestMs = maxRestMs;
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
    const restMs = workedMs * (1 / this.#share - 1);
    if (restMs > 0) await delay(Math.min(restMs, this.#maxRestMs), signal);
  }
}
