import type { Source } from "@tapedeck/proto/tapedeck/v1/query";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { QueryClient } from "../../query-client.ts";
import { jobNotFound } from "./errors.ts";
import { read } from "./read.ts";

export type FoundJob = {
  readonly source: Source;
  readonly head: AnswerHead;
  /** An encoded hashicorp.vagrant.Job, as it was recorded. */
  readonly bytes: Uint8Array;
  /** Of this version; the head's where query does not tell it. */
  readonly position: string;
};

/**
 * The newest version of a job (at the call's moment, where it names one): of any session of the source, as a job's id is
 * its own everywhere, unless the call names a session.
 * @throws UpstreamError NOT_FOUND, as Vagrant says it
 * @throws TapedeckError those of resolveSource and of query
 */
export async function findJob(
  deps: { readonly query: QueryClient },
  id: string,
  context: CallContext,
): Promise<FoundJob> {
  const { source, head, rows } = await read(deps, "jobs", context, id);
  // No job has the id "", and every id begins with it.
  const row = rows.find(({ key }) => key === id && id !== "");
  if (row === undefined) throw jobNotFound();
  return { source, head, bytes: row.bytes, position: row.position ?? head.position };
}
