import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";

/**
 * Creates the monthly partitions of these timestamps ("2026-11-20T…", UTC). Checks each time which exist, because a rebuild
 * may have swapped the tables.
 */
export async function ensurePartitions(tx: Tx, moments: Iterable<string>): Promise<void> {
  const months = new Set<string>();
  for (const moment of moments) months.add(moment.slice(0, 7));
  const { rows } = await sql<{ month: string }>`
    select month from unnest(${[...months]}::text[]) as month
    where to_regclass(${sql.raw("'events_' || replace(month, '-', '_')")}) is null
  `.execute(tx);
  for (const { month } of rows) {
    await sql`
      create table if not exists ${sql.table(`events_${month.replace("-", "_")}`)} partition of events
      for values from (${sql.lit(`${month}-01 00:00:00+00`)}) to (${sql.lit(`${next(month)}-01 00:00:00+00`)})
    `.execute(tx);
  }
}

function next(month: string): string {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 7);
}
