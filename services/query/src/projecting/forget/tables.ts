import type { LogReader } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import { assertOfThisLog, ForeignCheckpointError, readAnyCheckpoint } from "../../db/checkpoint.ts";
import { internalSchema, liveSchema, openDatabase, schemasOf } from "../../db/database.ts";
import { columnTypes } from "../../db/schema.generated.ts";
import { forgetWorkspace } from "./workspace.ts";

/**
 * Forgets the tables of a workspace if they hold events that its log does not have, because it was restored from a backup.
 * Query makes them from the log when it starts. Returns whether it did. No query may be projecting.
 */
export async function forgetForeignTables(databaseUrl: string, workspace: string, log: LogReader): Promise<boolean> {
  await using database = openDatabase({ url: databaseUrl, connections: 1 });
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${`${internalSchema(liveSchema)}.checkpoint`}) is not null as there`.execute(database.db);
  if (rows[0]?.there !== true) return false;
  const checkpoint = await readAnyCheckpoint(database.db, workspace);
  if (checkpoint === undefined || checkpoint.removed) return false;
  try {
    await assertOfThisLog(checkpoint, log);
    return false;
  } catch (error) {
    if (!(error instanceof ForeignCheckpointError)) throw error;
    return await forgetWorkspace(database.db, workspace);
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
