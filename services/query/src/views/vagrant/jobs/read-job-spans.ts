import { JobSpan } from "@tapedeck/proto/tapedeck/v1/query";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import type { Tx } from "../../../db/database.ts";
import type { Collection, CollectionScope, Item } from "../../states/collection.ts";
import { jobsIn } from "./jobs-in.ts";

/** About as many as a job with millions of lines has beside another such job. */
const maxSpans = 100_000;

/** The spans of the jobs, in the order of the log. */
export const jobSpans: Collection = {
  async open(tx, scope) {
    const spans = await readJobSpans(tx, scope);
    return async () => spans;
  },
};

async function readJobSpans(tx: Tx, scope: CollectionScope): Promise<readonly Item[]> {
  if (scope.session === undefined) return [];
  const { epoch, offset } = scope;
  const { rows } = await sql<{ readonly job: string; readonly first: Offset; readonly last: Offset }>`
    select job, first_position as first, least(last_position, ${offset}) as last from vagrant_job_spans
    where ${jobsIn(scope, scope.session)} and first_position <= ${offset}
    order by first_position limit ${maxSpans}`.execute(tx);
  return rows.map(({ job, first, last }) => {
    const at = (position: Offset) => formatPosition({ epoch, offset: position });
    return { key: job, bytes: JobSpan.encode({ first: at(first), last: at(last) }).finish() };
  });
}
