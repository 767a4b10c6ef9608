import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { justBefore, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";

export type JobSearch = {
  readonly log: LogReader;
  readonly source: SourceName;
  readonly job: string;
  /** Limits the search to this session. */
  readonly session: string | undefined;
  /** The job was recorded by then. */
  readonly untilOffset: Offset;
};

/** How far apart the clocks of the log and of the server, which makes the ids, may be. */
const clockSlackMs = 3_600_000;

/**
 * The first event about a job. Undefined if the log has none, or no longer has it.
 *
 * Cost: a job's id contains the time when it was queued, so the facts (not the output) of the source's jobs are read
 * from an hour before that. An event found there is the first one if it is job.queued, with which every job begins.
 * Otherwise a clock was wrong or the log has lost the job's beginning, and the facts are read from the log's beginning.
 */
export async function firstOfJob(search: JobSearch, signal: AbortSignal): Promise<RecordedEvent | undefined> {
  const { log, job } = search;
  const queued = ulidTime(job);
  if (queued !== undefined && queued - clockSlackMs < Date.now()) {
    const begin = await log.firstSince(new Date(queued - clockSlackMs));
    const first = begin === undefined ? undefined : await firstAfter(justBefore(begin), search, signal);
    if (first?.event.kind === "job.queued" || signal.aborted) return first;
  }
  return firstAfter(logStart, search, signal);
}

async function firstAfter(
  afterOffset: Offset,
  { log, source, job, session, untilOffset }: JobSearch,
  signal: AbortSignal,
): Promise<RecordedEvent | undefined> {
  const subjects = [eventSubject(source, "jobs", "job.queued")];
  for await (const recorded of log.history({ afterOffset, subjects }, untilOffset, signal)) {
    const { event } = recorded;
    if (event.subject === job && (session === undefined || event.session === session)) return recorded;
  }
  return undefined;
}

/** Crockford's base 32: the digits of a ULID. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** The time in an id, in milliseconds since 1970; undefined when it is not a ULID. */
export function ulidTime(id: string): number | undefined {
  if (!ulid.test(id)) return undefined;
  return [...id.slice(0, 10)].reduce((time, digit) => time * digits.length + digits.indexOf(digit), 0);
}
