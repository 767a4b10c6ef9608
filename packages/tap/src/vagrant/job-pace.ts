import type { TappedJob } from "./tapped-jobs.ts";

export type JobPace = {
  readonly jobs: readonly TappedJob[];
  readonly msSinceConnected: number;
  readonly msSinceJobEnded: number;
  /** How long a list takes. */
  readonly tookMs: number;
};

/**
 * While jobs may come and go. A server that lives inside one `vagrant` command is gone 100 ms after its last job, and some
 * commands take no longer than that.
 */
const quickMs = 50;
/** How long to poll quickly: after the connection was made, while there was no job at all, and after a job has ended. */
const quickFor = { connected: 10_000, empty: 60_000, finished: 5_000 };
/** The longest delay while a job is not finished, and while none is under way. */
const busyMs = 500;
const idleMs = 2_000;
/**
 * The delay is shorter if a list costs the server little. Otherwise a job that prints fast could fill the window that
 * the server keeps before the job's stream is open.
 */
const soonMs = 200;
/** The delay is this many times as long as an answer: about 2 % of a processor. */
const littleCost = 50;

/** The delay between two lists of the jobs. */
export function jobDelayMs({ jobs, msSinceConnected, msSinceJobEnded, tookMs }: JobPace): number {
  const isEmpty = jobs.length === 0;
  const isNew = msSinceConnected < quickFor.connected || (isEmpty && msSinceConnected < quickFor.empty);
  const isQuick = isNew || msSinceJobEnded < quickFor.finished;
  const isBusy = jobs.some(({ isFinished }) => !isFinished);
  // A long list is work for the server, which has most of the time for itself.
  const delayMs = isQuick
    ? Math.min(busyMs, Math.max(quickMs, 4 * tookMs))
    : Math.min(isBusy ? busyMs : idleMs, Math.max(soonMs, littleCost * tookMs));
  return Math.max(delayMs, 2 * tookMs);
}
