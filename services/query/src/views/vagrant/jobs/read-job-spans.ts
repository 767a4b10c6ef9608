import { JobSpan } from "@tapedeck/proto/tapedeck/v1/query";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import { withoutSwap } from "../../../db/read.ts";
import type { Collection } from "../../states/collection.ts";
import { jobsIn } from "./jobs-in.ts";

/** About as many as a job with millions of lines has beside another such job. */
const maxSpans = 100_000;

/** The spans of the jobs, in the order of the log. What is recorded by a position never changes. */
export const jobSpans: Collection = async function* (scope, { database }) {
  if (scope.session === undefined) return;
  const { epoch, offset } = scope;
  const wanted = jobsIn(scope, scope.session);
  const { rows } = await sql<{ readonly job: string; readonly first: Offset; readonly last: Offset }>`
    ${withoutSwap} select job, first_position as first, least(last_position, ${offset}) as last from vagrant_job_spans
    where ${wanted} and first_position <= ${offset}
    order by first_position limit ${maxSpans}`.execute(database().db);
  const at = (position: Offset) => formatPosition({ epoch, offset: position });
  for (const { job, first, last } of rows) {
    yield { key: job, bytes: JobSpan.encode({ first: at(first), last: at(last) }).finish() };
  }
};
