import { delay } from "@tapedeck/shared/sync/delay";
import type { JobFollower } from "./follow-jobs.ts";
import type { JobPoll } from "./poll-jobs.ts";
import type { TappedJobs } from "./tapped-jobs.ts";

/** Polls for readers are at least so far apart. */
const leastMs = 50;
/** They are this many times as far apart as a list takes: readers take at most a tenth of the server's time. */
const apart = 10;

export type JobObserverOptions = {
  readonly jobs: Pick<JobPoll, "pollNow" | "nextPoll" | "tookMs">;
  readonly known: TappedJobs;
  /** Jobs that were queued through this tap and have not been listed yet. */
  readonly queued: ReadonlySet<string>;
  readonly follower: Pick<JobFollower, "done">;
  readonly signal: AbortSignal;
};

/** Observes jobs for readers, however many ask, at a pace that costs the server little. */
export class JobObserver {
  readonly #options: JobObserverOptions;
  /** The poll for readers that has not started yet. */
  #poll: Promise<void> | undefined;
  #polledAt = Number.NEGATIVE_INFINITY;

  constructor(options: JobObserverOptions) {
    this.#options = options;
  }

  /** Resolves when the job's present state was emitted, and all of its output if the job is over. */
  async observe(id: string): Promise<void> {
    const { jobs, known, queued, follower } = this.#options;
    if (known.isRecorded(id)) return;
    // An unknown id may be made up. If the server has such a job since, the next list shows it.
    if (known.get(id) === undefined && !queued.has(id)) await jobs.nextPoll();
    else await this.#pollSoon();
    if (known.get(id)?.isFinished) await follower.done(id);
  }

  /** One poll serves all requests that come before it begins. */
  #pollSoon(): Promise<void> {
    const { jobs, signal } = this.#options;
    const apartMs = Math.max(leastMs, apart * jobs.tookMs);
    const waitMs = Math.max(0, this.#polledAt + apartMs - performance.now());
    this.#poll ??= delay(waitMs, signal).then(() => {
      this.#poll = undefined;
      this.#polledAt = performance.now();
      return jobs.pollNow();
    });
    return this.#poll;
  }
}
