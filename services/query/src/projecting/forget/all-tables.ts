import { type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import type { TablesEnd } from "@tapedeck/shared/log/tables-end";
import { sql } from "kysely";
import { type Database, liveSchema } from "../../db/database.ts";
import { noSwapUntilCommit } from "../../db/read.ts";
import { checkpointOf, dropAbandoned, hasTables, retiredSchemas, shadowSchema } from "../swap.ts";

/** That of a workspace in the tables of one schema. */
type TablesCheckpoint = { readonly schema: string; readonly epoch: string; readonly position: Offset };

/**
 * The checkpoints of a workspace in all tables of the database that have rows of it: the live ones, those that a rebuild
 * makes or has left, and replaced ones that are still read.
 */
async function allCheckpoints({ db }: Pick<Database, "db">, workspace: string): Promise<readonly TablesCheckpoint[]> {
  return db.transaction().execute(async (tx) => {
    await noSwapUntilCommit(tx);
    const found: TablesCheckpoint[] = [];
    for (const schema of [liveSchema, shadowSchema, ...(await retiredSchemas(tx))]) {
      if (!(await hasTables(tx, schema))) continue;
      const { rows } = await sql<Omit<TablesCheckpoint, "schema">>`
        select epoch, position from ${sql.table(checkpointOf(schema))} where workspace = ${workspace}`.execute(tx);
      found.push(...rows.map((row) => ({ ...row, schema })));
    }
    return found;
  });
}

/**
 * Whether all tables with rows of a workspace have had the messages up to the end. Tables that are begun later need not be
 * known: they read what the log has then. Drops those of an interrupted rebuild that have not had them, because nobody may
 * ever continue it.
 */
export async function haveAllPassed(
  database: Database,
  workspace: string,
  { epoch, seq }: TablesEnd,
): Promise<boolean> {
  const behind = (await allCheckpoints(database, workspace)).filter(
    (one) => one.epoch !== epoch || sequenceOf(one.position) < seq,
  );
  if (behind.some(isShadow)) await dropAbandoned(database);
  return behind.length === 0;
}

/** Whether no tables have rows of the workspace any more. Drops those of an interrupted rebuild that have. */
export async function areAllWithout(database: Database, workspace: string): Promise<boolean> {
  const left = await allCheckpoints(database, workspace);
  if (left.some(isShadow)) await dropAbandoned(database);
  return left.length === 0;
}

const isShadow = ({ schema }: TablesCheckpoint) => schema === shadowSchema;
