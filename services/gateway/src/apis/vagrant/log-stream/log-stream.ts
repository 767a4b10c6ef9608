import { type GetLogStreamRequest, LogBatch, LogBatch_Entry } from "@tapedeck/proto/vagrant/vagrant";
import type { Event } from "@tapedeck/shared/events/codec";
import type { Recorded } from "@tapedeck/shared/log/log";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { CallContext } from "../../../call-context.ts";
import { eventsIn, type ScopeDeps, type SessionScope, sessionScope } from "../../session-scope.ts";
import { UpstreamError } from "../../upstream-error.ts";
import type { VagrantStream } from "../job-stream/job-stream.ts";
import { indexOf } from "../job-stream/job-stream-course.ts";
import { batches, withPauses } from "../job-stream/output-batches.ts";
import { holding } from "../wire.ts";
import { type MeantJobs, meantJobs, type Place, remember } from "./log-stream-jobs.ts";

const defaultBacklog = 50;

/** How far the last lines are looked for at first, in messages of the log; it grows until they are found. */
const firstWindow = 4_096;

/**
 * GetLogStream, which Vagrant declares and never had, answered with what jobs have printed: of the jobs about the basis,
 * project or target that the request names by its resource_id, and about what belongs to it. Each message is a
 * hashicorp.vagrant.LogBatch of one job: `deployment_id` is the job's id, `instance_id` Tapedeck's session, the `lines`
 * are at most 64 and 1 MiB. An entry is a line as it was printed, with colours and the machine's prefix and without its
 * line end; what was printed piece by piece is an entry for each piece. Its `timestamp` is when the piece was seen, or
 * what Vagrant told of it. Bytes that are no text have replacement characters (GetJobStream has the bytes); an event that
 * prints nothing has no entry.
 *
 * What the log has twice (a server that was recorded in two sessions) is told once, as far as it is read.
 *
 * First the last `limit_backlog` entries (0: 50; below 0: all) that were recorded before the call, then what comes,
 * without an end, all in the order of the log. As jobs are, they are of all sessions of the source, unless the call names
 * a session, with which the stream ends, or says by `after` where to begin.
 *
 * What it costs: the log knows a source's output, not whose it is, so the output of all its jobs passes through here
 * twice, back from the end as far as the backlog reaches; all of it once for a backlog without a limit.
 * @throws UpstreamError FAILED_PRECONDITION without a scope, as Vagrant says it
 * @throws TapedeckError those of sessionScope
 */
export async function logStream(
  deps: ScopeDeps,
  { scope: asked, limit_backlog }: GetLogStreamRequest,
  context: CallContext,
): Promise<VagrantStream> {
  const wanted = placeOf(asked);
  const whole = await sessionScope(deps, context, "vagrant");
  const isAll = context.session === undefined && context.after === undefined;
  const scope = isAll ? ofAllSessions(whole, deps) : whole;
  const lastSeq = await deps.positions.lastSeq();
  const jobs = meantJobs(deps, { source: scope.source, wanted, context });
  const backlog = limit_backlog === 0 ? defaultBacklog : limit_backlog;
  return { head: scope.head, messages: messagesOf(deps, { scope, jobs, backlog, lastSeq }, context.signal) };
}

function placeOf(scope: GetLogStreamRequest["scope"]): Place {
  if (scope === undefined || scope.value.resource_id === "") throw invalidScope();
  return { kind: scope.$case, id: scope.value.resource_id };
}

const failedPrecondition = 9;

function invalidScope(): UpstreamError {
  return new UpstreamError(failedPrecondition, "invalid scope supplied");
}

function ofAllSessions(scope: SessionScope, { positions }: ScopeDeps): SessionScope {
  return { ...scope, afterSeq: 0, head: { ...scope.head, position: positions.written(0) } };
}

type LogRequest = {
  readonly scope: SessionScope;
  readonly jobs: MeantJobs;
  /** Entries; below 0: all. */
  readonly backlog: number;
  /** The log's end when the call was accepted. */
  readonly lastSeq: number;
};

async function* messagesOf(
  deps: ScopeDeps,
  { scope, jobs, backlog, lastSeq }: LogRequest,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const { log, positions } = deps;
  const { source, only, afterSeq } = scope;
  const subjects = [eventSubject(source, "jobs", "job.queued"), eventSubject(source, "jobs", "terminal.written")];
  const end = only?.ended === true ? Math.min(lastSeq, positions.own(only.end_position)) : lastSeq;
  const { add, rest } = logBatches();

  let isNew = newOutput();
  const start = await backlogStart();
  let { skip } = start;
  for await (const recorded of recordedAfter(start.afterSeq)) {
    const lines = await linesOf(recorded);
    yield* add(recorded, lines.slice(skip));
    skip = Math.max(0, skip - lines.length);
  }
  yield* rest();
  if (signal.aborted) return;
  const from = { afterSeq: Math.max(end, afterSeq), subjects };
  for await (const recorded of withPauses((options) => eventsIn(deps, scope, from, options), signal)) {
    if (recorded === undefined) yield* rest();
    else yield* add(recorded, await linesOf(recorded));
  }
  if (!signal.aborted) yield* rest();

  /** Where the backlog begins, and how many lines after it are older than that. */
  async function backlogStart(): Promise<{ readonly afterSeq: number; readonly skip: number }> {
    if (backlog < 0) return { afterSeq, skip: 0 };
    for (let window = firstWindow; ; window *= 8) {
      const begin = Math.max(afterSeq, end - window);
      let count = 0;
      for await (const recorded of recordedAfter(begin)) count += (await linesOf(recorded)).length;
      if (count >= backlog || begin === afterSeq || signal.aborted) {
        return { afterSeq: begin, skip: Math.max(0, count - backlog) };
      }
    }
  }

  async function* recordedAfter(seq: number): AsyncGenerator<Recorded, void> {
    isNew = newOutput();
    if (end <= seq) return;
    for await (const recorded of log().history({ afterSeq: seq, subjects }, end, signal)) {
      if (only === undefined || recorded.event.session === only.session) yield recorded;
    }
  }

  async function linesOf(recorded: Recorded): Promise<readonly string[]> {
    if (recorded.event.kind !== "terminal.written") {
      jobs.learn(recorded);
      return [];
    }
    const lines = printed(recorded.event);
    return lines.length > 0 && (await jobs.has(recorded)) && isNew(recorded) ? lines : [];
  }
}

/** Tells of the events of a log, in its order, whether another session has told the same before. */
function newOutput(): (recorded: Recorded) => boolean {
  const told = new Map<string, { readonly session: string; readonly next: number }>();
  return ({ event }) => {
    const { subject: job, session } = event;
    const index = indexOf(event);
    if (index === undefined) return true;
    const before = told.get(job);
    if (before !== undefined && before.session !== session && index < before.next) return false;
    remember(told, job, { session, next: index + 1 });
    return true;
  };
}

/** The lines of a terminal event; none where it prints nothing. */
function printed({ detail }: Event): readonly string[] {
  if (detail?.$case !== "text" || detail.value.text === "") return [];
  return detail.value.text.replace(/\r?\n$/, "").split(/\r?\n/);
}

const linesField = 3;

/** Messages of the lines of one job and session each. */
function logBatches() {
  let whose: Pick<Event, "subject" | "session"> = { subject: "", session: "" };
  const { add, rest } = batches((entries) =>
    Buffer.concat([
      LogBatch.encode({ deployment_id: whose.subject, instance_id: whose.session, lines: [] }).finish(),
      holding(linesField, entries),
    ]),
  );
  return {
    rest,
    *add({ event }: Recorded, lines: readonly string[]): Generator<Uint8Array, void> {
      if (lines.length === 0) return;
      if (event.subject !== whose.subject || event.session !== whose.session) yield* rest();
      whose = event;
      const timestamp = event.occurred_at ?? event.observed_at;
      for (const line of lines) yield* add(LogBatch_Entry.encode({ timestamp, line }).finish());
    },
  };
}
