import type { LogReader } from "@tapedeck/shared/log/log";
import { endOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { belongsToLog, formatPosition } from "@tapedeck/shared/log/position";
import { type Kysely, sql } from "kysely";
import type { Tx } from "./database.ts";
import { plannedOnce } from "./pipeline.ts";
import type { CheckpointRow, Schema } from "./schema.ts";

/** The tables do not belong to this log; the message is one sentence for people. */
export class ForeignCheckpointError extends Error {
  override readonly name = "ForeignCheckpointError";
}

/** The tables are not where a batch starts: they were swapped or restored meanwhile. */
export class CheckpointMovedError extends Error {
  override readonly name = "CheckpointMovedError";
}

/** How far the tables of a workspace are; undefined: they are not begun, or the workspace was removed. */
export async function readCheckpoint(db: Kysely<Schema>, workspace: string): Promise<CheckpointRow | undefined> {
  return selectCheckpoint(db, workspace).executeTakeFirst();
}

/** Also that of a workspace whose rows are being deleted. */
export async function readAnyCheckpoint(db: Kysely<Schema>, workspace: string): Promise<CheckpointRow | undefined> {
  return db.selectFrom("checkpoint").selectAll().where("workspace", "=", workspace).executeTakeFirst();
}

/** Those of all workspaces, removed ones too. */
export async function readCheckpoints(db: Kysely<Schema>): Promise<readonly CheckpointRow[]> {
  return db.selectFrom("checkpoint").selectAll().orderBy("workspace").execute();
}

function selectCheckpoint(db: Kysely<Schema>, workspace: string) {
  return db.selectFrom("checkpoint").selectAll().where("workspace", "=", workspace).where("removed", "=", false);
}

const whatToDo =
  "restore a backup with `tapedeck restore`, or continue with what is left, under new positions, with `tapedeck new-epoch`.";

/** The nats-server has no log of the workspace any more. */
export function lostLog({ workspace, epoch, position }: CheckpointRow, cause: unknown): ForeignCheckpointError {
  const last = formatPosition({ epoch, offset: position });
  const message = `the nats-server has no log of workspace ${workspace}, but the database has its events up to position ${last}: bring the log's files back (such as meta.inf), or ${whatToDo}`;
  return new ForeignCheckpointError(message, { cause });
}

/**
 * Creates the checkpoint of a workspace that has no rows: before its first event.
 * @throws CheckpointMovedError while rows of a removed workspace of this name are being deleted
 */
export async function beginCheckpoint(
  db: Kysely<Schema>,
  { workspace, projection, epoch }: Pick<CheckpointRow, "workspace" | "projection" | "epoch">,
): Promise<CheckpointRow> {
  await sql`
    with begun as (
      insert into checkpoint (workspace, projection, epoch, position)
      values (${workspace}, ${projection}, ${epoch}, ${logStart}) on conflict do nothing returning workspace, epoch)
    insert into workspaces (workspace, epoch) select workspace, epoch from begun
    on conflict (workspace) do update set epoch = excluded.epoch`.execute(db);
  const begun = await readCheckpoint(db, workspace);
  if (begun === undefined)
    throw new CheckpointMovedError(`the rows of the removed workspace ${workspace} are being deleted`);
  return begun;
}

/** Reads the checkpoint and locks it until the transaction ends; other writers wait there. */
export async function lockCheckpoint(tx: Tx, workspace: string): Promise<CheckpointRow | undefined> {
  const { rows } = await sql<CheckpointRow>`${plannedOnce}
    select * from checkpoint where workspace = ${workspace} and not removed for update`.execute(tx);
  return rows[0];
}

export async function moveCheckpoint(
  tx: Tx,
  { workspace, position, applied_position, recorded_until_ms }: CheckpointRow,
): Promise<void> {
  await sql`${plannedOnce}
    update checkpoint set position = ${position}, applied_position = ${applied_position}, recorded_until_ms = ${recorded_until_ms}
    where workspace = ${workspace}`.execute(tx);
}

/** Shows readers that the tables have changed without new events; see tablesVersion. */
export async function touchCheckpoint(tx: Tx, workspace: string): Promise<void> {
  await tx.updateTable("checkpoint").set({ workspace }).where("workspace", "=", workspace).execute();
}

/**
 * The checkpoint, if the tables belong to this log. If the log was restored from a backup since, tables that do not go
 * beyond the backup belong to the restored log and follow it from now on.
 * @throws ForeignCheckpointError
 */
export async function ofThisLog(db: Kysely<Schema>, checkpoint: CheckpointRow, log: LogReader): Promise<CheckpointRow> {
  await assertOfThisLog(checkpoint, log);
  const { workspace, epoch } = checkpoint;
  if (epoch === log.epoch) return checkpoint;
  await sql`
    with followed as (
      update checkpoint set epoch = ${log.epoch} where workspace = ${workspace} and epoch = ${epoch} returning workspace)
    update workspaces w set epoch = ${log.epoch} from followed f where w.workspace = f.workspace`.execute(db);
  return { ...checkpoint, epoch: log.epoch };
}

/**
 * Whether tables can follow a log; tables without events can follow any.
 * @throws ForeignCheckpointError
 */
export async function assertOfThisLog(checkpoint: CheckpointRow, log: LogReader): Promise<void> {
  const { workspace, epoch, position } = checkpoint;
  if (position === logStart) return;
  const at = (offset: Offset) => formatPosition({ epoch, offset });
  if (!belongsToLog(log, { epoch, offset: position })) {
    const beyond = log.formerEpochs.find((one) => one.epoch === epoch);
    const reason =
      beyond === undefined
        ? `the database follows another log of workspace ${workspace} (${epoch}; this one is ${log.epoch})`
        : `the database is at position ${at(position)} of workspace ${workspace}, beyond the end ${at(endOf(beyond.lastSeq))} of the backup that the log was restored from`;
    throw new ForeignCheckpointError(
      `${reason}: restore the old log with \`tapedeck restore\`, or have the tables made from this one, which loses what only they have, with \`tapedeck new-epoch\`.`,
    );
  }
  const { lastOffset } = await log.bounds();
  if (position > lastOffset) {
    throw new ForeignCheckpointError(
      `the database is at position ${at(position)} of workspace ${workspace}, beyond the log's end ${at(lastOffset)}, so the log has lost events: ${whatToDo}`,
    );
  }
  const other = await reassignedPosition(checkpoint, log);
  if (other !== undefined) {
    throw new ForeignCheckpointError(
      `the database is at position ${at(position)} of workspace ${workspace}, but position ${at(other)} was assigned to another event since, so the log has lost events: ${whatToDo}`,
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
