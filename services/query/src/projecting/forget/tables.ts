import type { LogReader } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import { assertOfThisLog, ForeignCheckpointError, readCheckpoints } from "../../db/checkpoint.ts";
import { type Database, internalSchema, liveSchema, openDatabase, schemasOf } from "../../db/database.ts";
import { columnTypes } from "../../db/schema.generated.ts";

/**
 * Empties the tables if they hold events that the log does not have, because it was restored from a backup. Query rebuilds
 * them from the log when it starts. Returns whether it dropped them. No query may be projecting.
 */
export async function forgetForeignTables(databaseUrl: string, log: LogReader): Promise<boolean> {
  await using database = openDatabase({ url: databaseUrl, connections: 1 });
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${`${internalSchema(liveSchema)}.checkpoint`}) is not null as there`.execute(database.db);
  if (rows[0]?.there !== true) return false;
  try {
    const checkpoints = (await readCheckpoints(database.db)).filter(({ removed }) => !removed);
    for (const checkpoint of checkpoints) await assertOfThisLog(checkpoint, log);
    return false;
  } catch (error) {
    if (!(error instanceof ForeignCheckpointError)) throw error;
    await emptyTables(database);
    return true;
  }
}

/**
 * Foreign keys of somebody else's tables to ours, such as "marks_session_fkey of public.marks". Postgres empties no table
 * that one refers to.
 */
export async function foreignKeysToTables(databaseUrl: string): Promise<readonly string[]> {
  await using database = openDatabase({ url: databaseUrl, connections: 1 });
  const { rows } = await sql<{ key: string }>`
    with own as (select oid from pg_class where relnamespace = any(select to_regnamespace(unnest(${schemasOf(liveSchema)}::text[])))
      and (relname = any(${[...Object.keys(columnTypes)]}) or relispartition))
    select quote_ident(conname) || ' of ' || conrelid::regclass as key from pg_constraint
    where contype = 'f' and conparentid = 0 and confrelid in (select oid from own) and conrelid not in (select oid from own)
    order by 1`.execute(database.db);
  return rows.map(({ key }) => key);
}

/** All but the ones that say which migrations were made. Partitions are emptied with their table. */
async function emptyTables({ db, schema }: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select oid::regclass::text as name from pg_class
    where relnamespace = any(${schemasOf(schema)}::text[]::regnamespace[]) and relkind in ('r', 'p') and not relispartition
      and relname = any(${[...Object.keys(columnTypes)]})`.execute(db);
  await sql`truncate ${sql.join(rows.map(({ name }) => sql.raw(name)))}`.execute(db);
}
