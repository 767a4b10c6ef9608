import type { LogReader, Recorded } from "@tapedeck/shared/log/log";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";

export type JobPlace = {
  readonly log: LogReader;
  readonly source: SourceName;
  readonly job: string;
  /** Only what was told in this session. */
  readonly session: string | undefined;
  /** The job was known by then. */
  readonly untilSeq: number;
};

/** How far the clocks of the server, which makes the ids, and of the log may be apart. */
const clockSlackMs = 3_600_000;

/**
 * The first event about a job: nothing of it was recorded before. Undefined when the log has none (any more).
 *
 * What it costs: a job's id says when it was queued, so the facts (not the output) of the source's jobs are read from an
 * hour before that. What is found there is the first if it is what every job begins with; else, which means that a clock
 * was wrong or that the log has lost its beginning, the facts are read from the log's begin.
 */
export async function firstOfJob(place: JobPlace, signal: AbortSignal): Promise<Recorded | undefined> {
  const { log, job } = place;
  const queued = ulidTime(job);
  if (queued !== undefined && queued - clockSlackMs < Date.now()) {
    const begin = await log.firstSince(new Date(queued - clockSlackMs));
    const first = begin === undefined ? undefined : await firstAfter(begin - 1, place, signal);
    if (first?.event.kind === "job.queued" || signal.aborted) return first;
  }
  return firstAfter(0, place, signal);
}

async function firstAfter(
  afterSeq: number,
  { log, source, job, session, untilSeq }: JobPlace,
  signal: AbortSignal,
): Promise<Recorded | undefined> {
  const subjects = [eventSubject(source, "jobs", "job.queued")];
  for await (const recorded of log.history({ afterSeq, subjects }, untilSeq, signal)) {
    const { event } = recorded;
    if (event.subject === job && (session === undefined || event.session === session)) return recorded;
  }
  return undefined;
}

/** Crockford's base 32: the digits of a ULID. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** The milliseconds since 1970 that an id says; undefined when it is no ULID. */
export function ulidTime(id: string): number | undefined {
  if (!ulid.test(id)) return undefined;
  return [...id.slice(0, 10)].reduce((time, digit) => time * digits.length + digits.indexOf(digit), 0);
}
