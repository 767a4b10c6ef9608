import { JobSpan } from "@tapedeck/proto/tapedeck/v1/query";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { text } from "../db/text.ts";
import type { Item } from "../views/states/fold.ts";
import type { ReadPlace } from "./read-place.ts";

/** As many as a job with millions of lines beside another such job has. */
const mostSpans = 100_000;

/** Spans of the jobs of a source (of a session, where one is named) whose ids begin so, in the order of the log. */
export async function readJobSpans(
  tx: Tx,
  { source, session, named, epoch, seq, key_prefix }: ReadPlace,
): Promise<readonly Item[]> {
  if (session === undefined) return [];
  const prefix = text(key_prefix);
  const { rows } = await sql<{ readonly job: string; readonly first: number; readonly last: number }>`
    select job, first_position as first, least(last_position, ${seq}) as last from vagrant_job_spans
    where ${named ? sql`session = ${session.session}` : sql`source = ${source.source}`}
      and first_position <= ${seq} and job >= ${prefix} and job < ${`${prefix}\u{10FFFF}`}
    order by first_position limit ${mostSpans}`.execute(tx);
  return rows.map(({ job, first, last }) => {
    const at = (position: number) => formatPosition({ epoch, seq: position });
    return { key: job, bytes: JobSpan.encode({ first: at(first), last: at(last) }).finish() };
  });
}
