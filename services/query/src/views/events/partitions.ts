import { sql } from "kysely";
import { internalSchema, type Tx } from "../../db/database.ts";
import { plannedOnce } from "../../db/pipeline.ts";

/**
 * Makes the monthly partitions of these timestamps ("2026-11-20T…", UTC). Checks each time which exist, because a rebuild
 * may have swapped the tables.
 *
 * A partition is made as a table of its own and then attached, because `create table … partition of` locks `events` against
 * all readers: it would wait for open transactions that have read `events`, and later readers would wait behind it.
 * To attach it takes a lock that no reader and no writer of rows holds or waits for.
 */
export async function ensurePartitions(tx: Tx, timestamps: Iterable<string>): Promise<void> {
  const months = new Set<string>();
  for (const timestamp of timestamps) months.add(timestamp.slice(0, 7));
  if ((await missing(tx, months)).length === 0) return;
  // Two workspaces may need the same one at once.
  await sql`lock table events in share update exclusive mode`.execute(tx);
  for (const { month, schema } of await missing(tx, months)) {
    const partition = sql.table(`${internalSchema(schema)}.events_${month.replace("-", "_")}`);
    // Its indexes are made when it is attached.
    await sql`create table ${partition} (like events including defaults including constraints)`.execute(tx);
    await sql`
      alter table events attach partition ${partition}
      for values from (${sql.lit(`${month}-01 00:00:00+00`)}) to (${sql.lit(`${next(month)}-01 00:00:00+00`)})
    `.execute(tx);
  }
}

/** They are internal, because readers read them through `events` only. */
async function missing(tx: Tx, months: ReadonlySet<string>) {
  const { rows } = await sql<{ month: string; schema: string }>`${plannedOnce}
    select month, current_schema() as schema from unnest(${[...months]}::text[]) as month
    where to_regclass(${sql.raw("'events_' || replace(month, '-', '_')")}) is null
  `.execute(tx);
  return rows;
}

/** Also that of December 9999, which Postgres takes, and which has more digits. */
function next(month: string): string {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return number === 12
    ? `${String(year + 1).padStart(4, "0")}-01`
    : `${month.slice(0, 5)}${String(number + 1).padStart(2, "0")}`;
}
