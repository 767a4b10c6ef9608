import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { pause } from "@tapedeck/shared/sync/delay";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { QueryClient } from "../../query-client.ts";
import { resolveSource } from "../resolve-source.ts";
import { jobNotFound } from "./errors.ts";
import { ulidTime } from "./job-stream/job-stream-start.ts";
import { read } from "./read.ts";

export type FoundJob = {
  readonly source: Source;
  readonly head: AnswerHead;
  /** An encoded hashicorp.vagrant.Job, as it was recorded. */
  readonly bytes: Uint8Array;
  /** Of this version; the head's where query does not tell it. */
  readonly position: string;
};

/** How long a job that was queued just now may need to get into the record. */
const youngMs = 10_000;
const patienceMs = 2_000;

/**
 * The newest version of a job (at the call's moment, where it names one): of any session of the source, as a job's id is
 * its own everywhere, unless the call names a session. One that may just have been queued is
 * waited for a moment: its caller has the id from QueueJob, and the record has it when it was looked at.
 * @throws UpstreamError NOT_FOUND, as Vagrant says it
 * @throws TapedeckError those of resolveSource and of query
 */
export async function findJob(
  deps: { readonly query: QueryClient },
  id: string,
  context: CallContext,
): Promise<FoundJob> {
  // No job has the id "", and every id begins with it: query would give all jobs.
  if (id === "") {
    await resolveSource(deps.query, context, "vagrant");
    throw jobNotFound();
  }
  const isYoung = context.at === undefined && Math.abs(Date.now() - (ulidTime(id) ?? 0)) < youngMs;
  const end = performance.now() + (isYoung ? patienceMs : 0);
  for (;;) {
    const { source, head, rows } = await read(deps, "jobs", context, id);
    const row = rows.find(({ key }) => key === id);
    if (row !== undefined) return { source, head, bytes: row.bytes, position: row.position ?? head.position };
    if (performance.now() >= end || context.signal.aborted) throw jobNotFound();
    await pause(50, context.signal);
  }
}
