import type { LogReader } from "@tapedeck/shared/log/log";
import type { Kysely } from "kysely";
import type { Tx } from "./db/database.ts";
import type { CheckpointRow, Schema } from "./db/schema.ts";

const name = "log";

/** The tables do not belong to this log; the message is one sentence for people. */
export class ForeignCheckpointError extends Error {
  override readonly name = "ForeignCheckpointError";
}

export async function readCheckpoint(db: Kysely<Schema>): Promise<CheckpointRow | undefined> {
  return db.selectFrom("checkpoint").selectAll().where("name", "=", name).executeTakeFirst();
}

/** The place of a fresh set of tables: before the first event. */
export async function beginCheckpoint(db: Kysely<Schema>, projection: string, epoch: string): Promise<CheckpointRow> {
  const row = { name, projection, epoch, position: 0 };
  await db
    .insertInto("checkpoint")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await readCheckpoint(db)) ?? row;
}

/** Read under a lock that lasts to the end of the transaction: whoever else projects waits there. */
export async function lockCheckpoint(tx: Tx): Promise<CheckpointRow | undefined> {
  return tx.selectFrom("checkpoint").selectAll().where("name", "=", name).forUpdate().executeTakeFirst();
}

export async function moveCheckpoint(tx: Tx, position: number): Promise<void> {
  await tx.updateTable("checkpoint").set({ position }).where("name", "=", name).execute();
}

/** @throws ForeignCheckpointError */
export async function assertOfThisLog(checkpoint: CheckpointRow, log: LogReader): Promise<void> {
  const { epoch, position } = checkpoint;
  if (epoch !== log.epoch) {
    throw new ForeignCheckpointError(
      `the database follows another log (${epoch}; this one is ${log.epoch}): run \`tapedeck rebuild\` to make its tables from this log, or \`tapedeck restore\` to bring the old log back.`,
    );
  }
  const { lastSeq } = await log.bounds();
  if (position > lastSeq) {
    throw new ForeignCheckpointError(
      `the database is at position ${epoch}-${position}, beyond the log's end ${epoch}-${lastSeq}, so the log has lost events: run \`tapedeck rebuild\` to make the tables from what the log has, or \`tapedeck restore\` to bring the log back.`,
    );
  }
}
