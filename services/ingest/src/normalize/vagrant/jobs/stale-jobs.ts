import type { Job } from "@tapedeck/proto/vagrant/vagrant";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps, msBetween } from "@tapedeck/shared/time/timestamp";
import { isFinished } from "./job-facts.ts";

/** A tap finds a server sooner than that. Older work was not done for the command that runs the server. */
const findingMs = 10_000;

/**
 * Ids of jobs in the first list of a session that crashed commands left in the database, or that belong to commands that
 * run elsewhere (docs/upstreams/vagrant.md#jobs-of-other-processes). A server starts without finished jobs, so a finished
 * job ended after the start: a job with a later change is the server's own. Without a finished job, a job without a recent
 * change is taken for stale.
 */
export function staleJobs(jobs: readonly Job[], at: Timestamp): ReadonlySet<string> {
  const ends = jobs.flatMap((job) => (isFinished(job) ? (job.complete_time ?? job.cancel_time ?? []) : []));
  const [firstEnd] = ends.sort(compareTimestamps);
  const left = jobs.filter((job) => {
    const last = job.ack_time ?? job.assign_time ?? job.queue_time;
    if (isFinished(job) || last === undefined || msBetween(last, at) <= findingMs) return false;
    return firstEnd === undefined || compareTimestamps(last, firstEnd) < 0;
  });
  return new Set(left.map(({ id }) => id));
}
