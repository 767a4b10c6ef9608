import type { GetJobStreamRequest } from "@tapedeck/proto/vagrant/vagrant";
import { maxEffectMs, observeMethod } from "@tapedeck/shared/control-effects";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { delay } from "@tapedeck/shared/sync/delay";
import type { CallContext } from "../../../call-context.ts";
import type { ControlClient } from "../../../control-client.ts";
import { sendControl } from "../../control.ts";
import type { EncodedStream } from "../../encoded-answer.ts";
import { resolveSource } from "../../resolve-source.ts";
import { refuseAt, type ScopeDeps } from "../../session-scope.ts";
import { findJob } from "../jobs.ts";
import { JobPlayback } from "./job-playback.ts";

export type JobStreamDeps = ScopeDeps & { readonly control: ControlClient };

export type JobStreamOptions = {
  /**
   * How long a finished job must be silent before its output counts as over, without another sign of its end. See
   * jobStream.
   */
  readonly graceMs?: number;
};

/**
 * GetJobStream for a job of any session, or of the session that the call names. It can be called again and gives the same.
 * Each message is a hashicorp.vagrant.GetJobStreamResponse, in the order of the real server: `open`; a `state` (previous
 * UNKNOWN) with the job as it is now; its recorded output, `buffered`; then live output, not `buffered`, and each recorded
 * state that differs from the one before; when the job is finished and all its output is sent, `complete` and the end. A
 * message has at most 64 terminal events and 1 MiB. An event that the log has twice, because a server was recorded in two
 * sessions, is sent once. Messages of an unknown kind pass through.
 *
 * "Now" is a position of the log, at or after the call: what is recorded up to it is `buffered`. While the server runs, that is
 * everything that the job had written by the call, if it was over, because the tap reads the job first. The log is read at the
 * reader's pace. It reads the job's own events of the past, wherever they are (see jobSpans), and then the events of
 * all the source's jobs until this one is over.
 *
 * A finished job's output can continue: live output is cut when a job completes, and the rest is recorded afterwards. The
 * output is over when the record has the server's `complete` for the second reading of the output (mirror.received), when
 * the session is over, when a gap records that the second reading failed, and at once for a job that never started.
 * Failing all that, it is over when nothing of it was recorded for 30 s; a later call gets what came after that, too.
 *
 * A job that was not finished when its server went away ends the stream with UNAVAILABLE, as a server does that goes away.
 * When a later session finds the job again, another call continues there.
 * @throws UpstreamError NOT_FOUND, as Vagrant words it
 * @throws TapedeckError invalid_argument, and the errors of findJob
 */
export async function jobStream(
  deps: JobStreamDeps,
  { job_id: job }: GetJobStreamRequest,
  context: CallContext,
  { graceMs = 30_000 }: JobStreamOptions = {},
): Promise<EncodedStream> {
  refuseAt(context, "a job's stream begins with the job and has no `at`: use GetJob for the state at a time");
  if (context.after !== undefined) {
    throw invalidArgument("a job's stream has the whole job: omit `after`", "after");
  }
  await observeJob(deps, job, context);
  // Includes everything that is recorded by now.
  const minPosition = deps.positions.written(await deps.positions.lastOffset());
  const found = await findJob(deps, job, { ...context, minPosition });
  const playback = new JobPlayback(deps, found, { job, graceMs }, context);
  return { head: found.head, messages: playback.messages() };
}

/** Has the tap record what the server knows of the job now. Where no server runs, the record has all that there is. */
async function observeJob({ query, control }: JobStreamDeps, job: string, context: CallContext): Promise<void> {
  const source = await resolveSource(query, context, "vagrant");
  const request = Buffer.from(job);
  const forwarded = { method: observeMethod, request };
  const observed = sendControl(control, source, context, { method: observeMethod, request, forwarded });
  const over = new AbortController();
  await Promise.race([observed.catch(() => {}), delay(maxEffectMs, AbortSignal.any([over.signal, context.signal]))]);
  over.abort();
}
