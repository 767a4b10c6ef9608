import type { GetLogStreamRequest } from "@tapedeck/proto/vagrant/vagrant";
import { logStart } from "@tapedeck/shared/log/offset";
import type { CallContext } from "../../../call-context.ts";
import type { EncodedStream } from "../../encoded-answer.ts";
import { type ScopeDeps, type SessionScope, sessionScope } from "../../session-scope.ts";
import { invalidScope } from "../errors.ts";
import { LogPlayback } from "./log-playback.ts";
import { type JobScope, ScopedJobs } from "./scoped-jobs.ts";

const defaultBacklog = 50;

/**
 * GetLogStream, which Vagrant declares and never had, answered with the output of jobs: the jobs about the basis, project
 * or target that the request names by its resource_id, and about what belongs to it. Each message is a
 * hashicorp.vagrant.LogBatch of one job: `deployment_id` is the job's id, `instance_id` Tapedeck's session, and `lines` has
 * at most 64 entries and 1 MiB. An entry is a line as it was printed, with colours and the machine's prefix and without its
 * line end; output that was printed in pieces has an entry for each piece. Its `timestamp` is when the piece was observed,
 * or what Vagrant reported of it. Bytes that are not text have replacement characters (GetJobStream has the bytes); an
 * event that prints nothing has no entry.
 *
 * Output that the log has twice, because a server was recorded in two sessions, is sent once as far as the stream reads.
 *
 * First come the last `limit_backlog` entries (0: 50; below 0: all) that were recorded before the call, then live entries
 * without an end, all in the order of the log. Like jobs, they are of all sessions of the source, unless the call names a
 * session, with which the stream ends, or names in `after` where to begin.
 *
 * Cost: the log indexes output by source and not by job, so the output of all jobs passes through here twice, back from
 * the end as far as the backlog reaches, or once in full for a backlog without a limit.
 * @throws UpstreamError FAILED_PRECONDITION without a scope, as Vagrant words it
 * @throws TapedeckError the errors of sessionScope
 */
export async function logStream(
  deps: ScopeDeps,
  { scope: request, limit_backlog }: GetLogStreamRequest,
  context: CallContext,
): Promise<EncodedStream> {
  const requestedScope = jobScope(request);
  const whole = await sessionScope(deps, context, "vagrant");
  const isAll = context.session === undefined && context.after === undefined;
  const scope = isAll ? ofAllSessions(whole, deps) : whole;
  const lastOffset = await deps.positions.lastOffset();
  const jobs = new ScopedJobs(deps, { source: scope.source, scope: requestedScope, context });
  const backlog = limit_backlog === 0 ? defaultBacklog : limit_backlog;
  const playback = new LogPlayback(deps, { scope, jobs, backlog, lastOffset }, context.signal);
  return { head: scope.head, messages: playback.messages() };
}

function jobScope(scope: GetLogStreamRequest["scope"]): JobScope {
  if (scope === undefined || scope.value.resource_id === "") throw invalidScope();
  return { kind: scope.$case, id: scope.value.resource_id };
}

function ofAllSessions(scope: SessionScope, { positions }: ScopeDeps): SessionScope {
  return { ...scope, afterOffset: logStart, head: { ...scope.head, position: positions.written(logStart) } };
}
