import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { QueryClient } from "../../query-client.ts";
import { readCollection } from "../read-collection.ts";
import { resolveSource } from "../resolve-source.ts";
import { jobNotFound } from "./errors.ts";
import { ulidTime } from "./job-stream/first-event.ts";

export type FoundJob = {
  readonly source: SourceName;
  readonly head: AnswerHead;
  /** An encoded hashicorp.vagrant.Job, as it was recorded. */
  readonly bytes: Uint8Array;
  /** Position of this version; the position of the head when query does not report one. */
  readonly position: string;
};

/** How old a job is at most that may still be on its way into the record, and how long to wait for it. */
const youngMs = 10_000;
const timeoutMs = 2_000;

/**
 * The newest version of a job, or its version at the moment that the call names. A job's id is unique, so every session of
 * the source counts unless the call names one. Waits briefly for a job that may have just been queued: its caller has the
 * id from QueueJob, and the record has the job only after the next poll.
 * @throws UpstreamError NOT_FOUND, as Vagrant words it
 * @throws TapedeckError the errors of resolveSource and of query
 */
export async function findJob(
  deps: { readonly query: QueryClient },
  id: string,
  context: CallContext,
): Promise<FoundJob> {
  // Every id begins with "", so query would return all jobs.
  if (id === "") {
    await resolveSource(deps.query, context, "vagrant");
    throw jobNotFound();
  }
  const isYoung = context.at === undefined && Math.abs(Date.now() - (ulidTime(id) ?? 0)) < youngMs;
  const end = performance.now() + (isYoung ? timeoutMs : 0);
  for (;;) {
    const { source, head, rows } = await readCollection(deps, "vagrant", "jobs", context, id);
    const row = rows.find(({ key }) => key === id);
    if (row !== undefined) return { source, head, bytes: row.bytes, position: row.position ?? head.position };
    if (performance.now() >= end || context.signal.aborted) throw jobNotFound();
    await delay(50, context.signal);
  }
}
