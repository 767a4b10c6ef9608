import type { LogReader } from "@tapedeck/shared/log/log";
import { endOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { belongsToLog, formatPosition } from "@tapedeck/shared/log/position";
import type { Kysely } from "kysely";
import type { Tx } from "./database.ts";
import type { CheckpointRow, Schema } from "./schema.ts";

const name = "log";

/** The tables do not belong to this log; the message is one sentence for people. */
export class ForeignCheckpointError extends Error {
  override readonly name = "ForeignCheckpointError";
}

/** The tables are not where a batch starts: they were swapped or restored meanwhile. */
export class CheckpointMovedError extends Error {
  override readonly name = "CheckpointMovedError";
}

export async function readCheckpoint(db: Kysely<Schema>): Promise<CheckpointRow | undefined> {
  return db.selectFrom("checkpoint").selectAll().where("name", "=", name).executeTakeFirst();
}

const whatToDo =
  "restore a backup with `tapedeck restore`, or continue with what is left, under new positions, with `tapedeck new-epoch`.";

/** The nats-server has no log any more. */
export function lostLog({ epoch, position }: CheckpointRow, cause: unknown): ForeignCheckpointError {
  const last = formatPosition({ epoch, offset: position });
  const message = `the nats-server has no log, but the database has its events up to position ${last}: bring the log's files back (such as meta.inf), or ${whatToDo}`;
  return new ForeignCheckpointError(message, { cause });
}

/** Creates the checkpoint of a fresh set of tables: before the first event. */
export async function beginCheckpoint(db: Kysely<Schema>, projection: string, epoch: string): Promise<CheckpointRow> {
  const row = { name, projection, epoch, position: logStart, applied_position: null, recorded_until_ms: null };
  await db
    .insertInto("checkpoint")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await readCheckpoint(db)) ?? row;
}

/** Reads the checkpoint and locks it until the transaction ends; other writers wait there. */
export async function lockCheckpoint(tx: Tx): Promise<CheckpointRow | undefined> {
  return tx.selectFrom("checkpoint").selectAll().where("name", "=", name).forUpdate().executeTakeFirst();
}

export async function moveCheckpoint(
  tx: Tx,
  { position, applied_position, recorded_until_ms }: CheckpointRow,
): Promise<void> {
  const moved = { position, applied_position, recorded_until_ms };
  await tx.updateTable("checkpoint").set(moved).where("name", "=", name).execute();
}

/** Shows readers that the tables have changed without new events; see tablesVersion. */
export async function touchCheckpoint(tx: Tx): Promise<void> {
  await tx.updateTable("checkpoint").set({ name }).where("name", "=", name).execute();
}

/**
 * The checkpoint, if the tables belong to this log. If the log was restored from a backup since, tables that do not go
 * beyond the backup belong to the restored log and follow it from now on.
 * @throws ForeignCheckpointError
 */
export async function ofThisLog(db: Kysely<Schema>, checkpoint: CheckpointRow, log: LogReader): Promise<CheckpointRow> {
  await assertOfThisLog(checkpoint, log);
  const { epoch } = checkpoint;
  if (epoch === log.epoch) return checkpoint;
  await db
    .updateTable("checkpoint")
    .set({ epoch: log.epoch })
    .where("name", "=", name)
    .where("epoch", "=", epoch)
    .execute();
  return { ...checkpoint, epoch: log.epoch };
}

/**
 * Whether tables can follow a log; tables without events can follow any.
 * @throws ForeignCheckpointError
 */
export async function assertOfThisLog(checkpoint: CheckpointRow, log: LogReader): Promise<void> {
  const { epoch, position } = checkpoint;
  if (position === logStart) return;
  const at = (offset: Offset) => formatPosition({ epoch, offset });
  if (!belongsToLog(log, { epoch, offset: position })) {
    const beyond = log.formerEpochs.find((one) => one.epoch === epoch);
    const reason =
      beyond === undefined
        ? `the database follows another log (${epoch}; this one is ${log.epoch})`
        : `the database is at position ${at(position)}, beyond the end ${at(endOf(beyond.lastSeq))} of the backup that the log was restored from`;
    throw new ForeignCheckpointError(
      `${reason}: restore the old log with \`tapedeck restore\`, or have the tables made from this one, which loses what only they have, with \`tapedeck new-epoch\`.`,
    );
  }
  const { lastOffset } = await log.bounds();
  if (position > lastOffset) {
    throw new ForeignCheckpointError(
      `the database is at position ${at(position)}, beyond the log's end ${at(lastOffset)}, so the log has lost events: ${whatToDo}`,
    );
  }
  const other = await reassignedPosition(checkpoint, log);
  if (other !== undefined) {
    throw new ForeignCheckpointError(
      `the database is at position ${at(position)}, but position ${at(other)} was assigned to another event since, so the log has lost events: ${whatToDo}`,
    );
  }
}

/**
 * The first position up to the last applied event that holds an event recorded after all applied ones. It means that the
 * log had lost its end before that position. Erased and expired events don't matter: no event takes their positions.
 */
async function reassignedPosition(
  { applied_position, recorded_until_ms }: CheckpointRow,
  log: LogReader,
): Promise<Offset | undefined> {
  if (applied_position === null || recorded_until_ms === null) return undefined;
  const later = await log.firstSince(new Date(recorded_until_ms + 1));
  return later !== undefined && later <= applied_position ? later : undefined;
}
