import type { LogReader } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import { liveSchema, openDatabase } from "../db/database.ts";
import { ForeignCheckpointError, ofThisLog, readCheckpoint } from "./checkpoint.ts";

/**
 * Drops the tables if they hold events that the log does not have, because it was restored from a backup. Query rebuilds
 * them from the log when it starts. Returns whether it dropped them. No query may be projecting.
 */
export async function forgetForeignTables(databaseUrl: string, log: LogReader): Promise<boolean> {
  await using database = openDatabase({ url: databaseUrl, connections: 1 });
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${`${liveSchema}.checkpoint`}) is not null as there`.execute(database.db);
  if (rows[0]?.there !== true) return false;
  const checkpoint = await readCheckpoint(database.db);
  if (checkpoint === undefined) return false;
  try {
    await ofThisLog(database.db, checkpoint, log);
    return false;
  } catch (error) {
    if (!(error instanceof ForeignCheckpointError)) throw error;
    await sql`drop schema ${sql.id(liveSchema)} cascade`.execute(database.db);
    return true;
  }
}
