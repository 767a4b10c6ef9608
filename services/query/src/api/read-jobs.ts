import { type RawBuilder, sql } from "kysely";
import { readConsistently } from "../db/read.ts";
import { text } from "../db/text.ts";
import type { Item } from "../views/states/fold.ts";
import type { ApiDeps } from "./deps.ts";
import type { ReadPlace } from "./read-place.ts";

/** As many as a Vagrant server itself remembers. */
const mostJobs = 10_000;
/** Of all messages together: who asks puts them into one. */
const mostBytes = 64 * 1024 * 1024;
/** Read at once: one is some kilobytes, seldom tens of them. */
const pageSize = 200;

/**
 * Jobs of a source (of a session, where one is named) as they stood, the newest 10,000 and of those the newest whose
 * messages are 64 MiB together, in the order of their ids. Page by page: what is recorded by a position never changes, so it need not be read at one moment; an erased session's jobs
 * may be missing from some page on.
 */
export async function* readJobs(
  { database }: Pick<ApiDeps, "database">,
  { source, session, named, seq, key_prefix }: ReadPlace,
): AsyncGenerator<Item, void> {
  if (session === undefined) return;
  const prefix = text(key_prefix);
  const wanted = sql`${named ? sql`session = ${session.session}` : sql`source = ${source.source}`}
    and position <= ${seq} and job >= ${prefix} and job < ${`${prefix}\u{10FFFF}`}`;
  const page = (from: RawBuilder<unknown>) =>
    readConsistently(database(), async (tx) => {
      const { rows } = await sql<{ readonly job: string; readonly message: Buffer; readonly position: number }>`
        select distinct on (job) job, message, position from vagrant_job_versions where ${wanted} and job ${from}
        order by job, position desc limit ${pageSize}`.execute(tx);
      return rows;
    });

  const oldest = await readConsistently(database(), async (tx) => {
    const { rows } = await sql<{ readonly job: string }>`
      select job from (
        select job, sum(size) over (order by job desc) as bytes from (
          select distinct on (job) job, octet_length(message) as size from vagrant_job_versions where ${wanted}
          order by job desc, position desc limit ${mostJobs}) as newest) as added_up
      where bytes <= ${mostBytes} order by job limit 1`.execute(tx);
    return rows[0]?.job;
  });
  if (oldest === undefined) return;
  let rows = await page(sql`>= ${oldest}`);
  while (rows.length > 0) {
    yield* rows.map(({ job, message, position }) => ({ key: job, bytes: message, seq: position }));
    rows = rows.length < pageSize ? [] : await page(sql`> ${rows.at(-1)?.job}`);
  }
}
