import { type GetJobStreamRequest, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { AnswerHead, CallContext } from "../../../call-context.ts";
import { nameOf } from "../../resolve-source.ts";
import { refuseMoment, type ScopeDeps } from "../../session-scope.ts";
import { UpstreamError } from "../../upstream-error.ts";
import { type FoundJob, findJob } from "../jobs.ts";
import {
  type Course,
  courseAfter,
  isClosed,
  isOver,
  jobSubjects,
  type Told,
  toldBy,
  unbegun,
} from "./job-stream-course.ts";
import {
  completeMessage,
  isFinished,
  jobVersion,
  openMessage,
  stateMessage,
  terminalMessage,
} from "./job-stream-messages.ts";
import { jobSpans, pastOfJob } from "./job-stream-past.ts";
import { batches, type Following, withPauses } from "./output-batches.ts";

/** Encoded messages, and what goes before them. */
export type VagrantStream = { readonly head: AnswerHead; readonly messages: AsyncIterable<Uint8Array> };

export type JobStreamOptions = {
  /** A job that is finished says no more once it was silent for so long, whatever the record lacks; see jobStream. */
  readonly graceMs?: number;
};

/**
 * What GetJobStream tells of a job of any session, or of the one that the call names, as often as it is asked; each
 * message a hashicorp.vagrant.GetJobStreamResponse, in the order of the real server: `open`; a `state` (previous UNKNOWN)
 * with the job as it is now; its recorded output, `buffered`; then what comes: output, not `buffered`, and each recorded
 * state that differs from the one told last; when the job is finished and all its output is told, `complete` and the
 * end. At most 64 terminal events and 1 MiB are in a message; one that the log has twice (a server that was recorded in
 * two sessions) is told once. Messages of an unknown kind pass through.
 *
 * "Now" is a position of the log, at or after the call: what is recorded up to it is `buffered`. The log is read at the
 * pace of whoever reads this: of what is past the job's own events, wherever they stand (see jobSpans), and what comes of
 * all of the source's jobs until this one is over.
 *
 * When the output of a finished job is over: live output is cut when a job completes, and what is missing is recorded
 * after it was finished. It is over when the record has the server's `complete` to the second reading of the output
 * (mirror.received), when the session is over, when it is recorded that the second reading failed (a gap), and at once
 * for a job that was never started. Failing all that, when nothing of it was recorded for 30 s; whoever asks later gets
 * what came after that, too.
 *
 * A job that was not finished when its server was gone ends the stream with UNAVAILABLE, as does a server that is gone.
 * Asked again, it goes on where a later session has found the job again.
 * @throws UpstreamError NOT_FOUND, as Vagrant says it
 * @throws TapedeckError invalid_argument, and those of findJob
 */
export async function jobStream(
  deps: ScopeDeps,
  { job_id }: GetJobStreamRequest,
  context: CallContext,
  { graceMs = 30_000 }: JobStreamOptions = {},
): Promise<VagrantStream> {
  refuseMoment(context, "a job's stream begins with the job and has no `at`: GetJob tells how it was at a moment");
  if (context.after !== undefined) {
    throw invalidArgument("a job's stream tells the whole job: leave `after` away", "after");
  }
  // All that is recorded by now.
  const minPosition = deps.positions.written(await deps.positions.lastSeq());
  const found = await findJob(deps, job_id, { ...context, minPosition });
  return { head: found.head, messages: messagesOf(deps, found, { job: job_id, graceMs }, context) };
}

async function* messagesOf(
  deps: ScopeDeps,
  found: FoundJob,
  { job, graceMs }: { readonly job: string; readonly graceMs: number },
  context: CallContext,
): AsyncGenerator<Uint8Array, void> {
  const { log, positions } = deps;
  const { session, signal } = context;
  const source = nameOf(found.source);
  const subjects = jobSubjects(source);
  const which = { job, session };
  const now = positions.own(found.head.position);
  const newest = positions.own(found.position);
  let version = jobVersion(found.bytes);
  let course: Course = { ...unbegun, isFinished: isFinished(version.state) };
  let written = 0;

  function* tell(told: Told | undefined, { add, rest }: Batches): Generator<Uint8Array, void> {
    if (told?.what === "message") {
      yield* rest();
      yield told.bytes;
    } else if (told?.what === "output" && (told.index ?? written) >= written) {
      written = (told.index ?? written) + 1;
      yield* add(told.event);
    }
  }

  yield openMessage();
  yield stateMessage(Job_State.UNKNOWN, version);

  const buffered = batches((events) => terminalMessage(events, true));
  const spans = await jobSpans(deps, { job, source, untilSeq: now }, context);
  let isDone = false;
  for await (const recorded of pastOfJob({ log: log(), source, spans, untilSeq: now }, signal)) {
    const isNewest = course.isFinished || recorded.seq > newest;
    isDone = isNewest && isClosed(course);
    if (isDone) break;
    course = courseAfter(course, recorded, which);
    yield* tell(toldBy(recorded, which), buffered);
  }
  yield* buffered.rest();
  // Of a job of which the log has lost everything nothing more can come.
  isDone ||= course.session === "";

  if (!isDone && !isOver(course)) yield* comingMessages();
  if (signal.aborted) return;
  if (!course.isFinished && !isFinished(version.state)) throw serverGone(job);
  yield completeMessage(version);

  async function* comingMessages(): AsyncGenerator<Uint8Array, void> {
    const live = batches((events) => terminalMessage(events, false));
    const follow: Following = (options) => log().follow({ afterSeq: now, subjects }, options);
    let seen = now;
    let quietAt = quietTime(course, graceMs);
    const quietIn = () => (course.isFinished ? Math.max(quietAt - performance.now(), leastWaitMs) : undefined);
    for await (const recorded of withPauses(follow, signal, quietIn)) {
      if (recorded === undefined) {
        yield* live.rest();
        const nothingComes = course.isCut || !version.hasStarted || performance.now() >= quietAt;
        if (course.isFinished && nothingComes && !(await hasMore(seen))) return;
        continue;
      }
      seen = recorded.seq;
      const { spokeAt } = course;
      course = courseAfter(course, recorded, which);
      if (course.spokeAt !== spokeAt) quietAt = quietTime(course, graceMs);
      const told = toldBy(recorded, which);
      if (told?.what !== "version") yield* tell(told, live);
      else {
        const { state, canceling } = version;
        version = told.version;
        if (version.state !== state || version.canceling !== canceling) {
          yield* live.rest();
          yield stateMessage(state, version);
        }
      }
      if (isOver(course)) break;
    }
    if (!signal.aborted) yield* live.rest();
  }

  /** The tail of the log may be behind its leader. A log that is away may have more. */
  async function hasMore(seen: number): Promise<boolean> {
    const last = await log()
      .lastMatch(subjects)
      .catch(() => Number.POSITIVE_INFINITY);
    return last > seen;
  }
}

type Batches = ReturnType<typeof batches>;

const leastWaitMs = 20;

/** By performance.now(): the grace begins with the last event of the job, whenever this reader came to it. */
function quietTime({ spokeAt }: Course, graceMs: number): number {
  const left = spokeAt + graceMs - Date.now();
  return performance.now() + Math.min(graceMs, Math.max(0, left));
}

const unavailable = 14;

function serverGone(job: string): UpstreamError {
  return new UpstreamError(unavailable, `the Vagrant server was gone before job ${job} was finished`);
}
