import type { Job } from "@tapedeck/proto/vagrant/vagrant";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments, msBetween } from "@tapedeck/shared/time/moment";
import { isFinished } from "./job-facts.ts";

/** A tap finds a server sooner than that: what was done longer ago was not done for the command that the server is in. */
const findingMs = 10_000;

/**
 * Of the first list of a session: ids of jobs that crashed commands left behind in the database, or that belong to
 * commands that run elsewhere. A server begins without what is over, so whatever is over was that after its begin: a job
 * for which something was done since is its own. Of a job for which nothing was done for a while before the look nothing
 * else speaks for it.
 */
export function staleJobs(jobs: readonly Job[], at: Moment): ReadonlySet<string> {
  const ends = jobs.flatMap((job) => (isFinished(job) ? (job.complete_time ?? job.cancel_time ?? []) : []));
  const [firstEnd] = ends.sort(compareMoments);
  const left = jobs.filter((job) => {
    const last = job.ack_time ?? job.assign_time ?? job.queue_time;
    if (isFinished(job) || last === undefined || msBetween(last, at) <= findingMs) return false;
    return firstEnd === undefined || compareMoments(last, firstEnd) < 0;
  });
  return new Set(left.map(({ id }) => id));
}
