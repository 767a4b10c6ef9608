import { JobSpan } from "@tapedeck/proto/tapedeck/v1/query";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { type Kysely, sql } from "kysely";
import type { Schema } from "../../../db/schema.ts";
import type { CollectionScope, Item } from "../../states/collection.ts";
import { jobsIn } from "./jobs-in.ts";

/** About as many as a job with millions of lines has beside another such job. */
const maxSpans = 100_000;

/** The spans of the jobs, in the order of the log. */
export async function* readJobSpans(scope: CollectionScope, db: Kysely<Schema>): AsyncGenerator<Item, void> {
  if (scope.session === undefined) return;
  const { epoch, offset } = scope;
  const filter = jobsIn(scope, scope.session);
  const { rows } = await sql<{ readonly job: string; readonly first: Offset; readonly last: Offset }>`
    select job, first_position as first, least(last_position, ${offset}) as last from vagrant_job_spans
    where ${filter} and first_position <= ${offset}
    order by first_position limit ${maxSpans}`.execute(db);
  const at = (position: Offset) => formatPosition({ epoch, offset: position });
  for (const { job, first, last } of rows) {
    yield { key: job, bytes: JobSpan.encode({ first: at(first), last: at(last) }).finish() };
  }
}
