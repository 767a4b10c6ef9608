import type { Offset } from "@tapedeck/shared/log/offset";
import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Schema } from "../../../db/schema.ts";
import type { CollectionScope, Item } from "../../states/collection.ts";
import { jobsIn } from "./jobs-in.ts";

/** The number of jobs that a Vagrant server itself remembers. */
const maxJobs = 10_000;
/** The limit for all messages together, because callers put them into one message. */
const maxBytes = 64 * 1024 * 1024;
/** A message has some kilobytes, rarely tens of them. */
const pageSize = 200;

/**
 * Jobs as they stood at the position, in the order of their ids: the newest 10,000, and of those the newest whose
 * messages have 64 MiB together. They are read page by page, so that an answer in transit holds one of them.
 */
export async function* readJobs(scope: CollectionScope, db: Kysely<Schema>): AsyncGenerator<Item, void> {
  if (scope.session === undefined) return;
  const filter = sql`${jobsIn(scope, scope.session)} and position <= ${scope.offset}`;
  const oldest = await oldestJob(db, filter);
  if (oldest === undefined) return;
  let rows = await page(db, filter, sql`>= ${oldest}`);
  while (rows.length > 0) {
    yield* rows.map(({ job, message, position }) => ({ key: job, bytes: message, offset: position }));
    rows = rows.length < pageSize ? [] : await page(db, filter, sql`> ${rows.at(-1)?.job}`);
  }
}

type JobVersion = { readonly job: string; readonly message: Buffer; readonly position: Offset };

async function page(
  db: Kysely<Schema>,
  filter: RawBuilder<unknown>,
  from: RawBuilder<unknown>,
): Promise<readonly JobVersion[]> {
  const { rows } = await sql<JobVersion>`
    select distinct on (job) job, message, position from vagrant_job_versions where ${filter} and job ${from}
    order by job, position desc limit ${pageSize}`.execute(db);
  return rows;
}

/** The first job that is within both limits, which are counted from the newest job back. */
async function oldestJob(db: Kysely<Schema>, filter: RawBuilder<unknown>): Promise<string | undefined> {
  const { rows } = await sql<{ readonly job: string }>`
    select job from (
      select job, sum(size) over (order by job desc) as bytes from (
        select distinct on (job) job, octet_length(message) as size from vagrant_job_versions where ${filter}
        order by job desc, position desc limit ${maxJobs}) as newest) as added_up
    where bytes <= ${maxBytes} order by job limit 1`.execute(db);
  return rows[0]?.job;
}
