import { readCheckpoint } from "../projecting/checkpoint.ts";
import type { Database, Tx } from "./database.ts";
import { lockUntilCommit } from "./lock.ts";
import type { CheckpointRow } from "./schema.ts";

/** Waits until nobody reads and keeps readers out until the transaction ends: tables are about to change their names. */
export async function swapLock(tx: Tx): Promise<void> {
  await lockUntilCommit(tx, "swap", "alone");
}

/**
 * Reads at one moment: all that `read` sees is what the checkpoint says. Undefined as checkpoint: nothing is projected
 * yet.
 */
export async function readConsistently<T>(
  { db }: Database,
  read: (tx: Tx, checkpoint: CheckpointRow | undefined) => Promise<T>,
): Promise<T> {
  return db
    .transaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute(async (tx) => {
      await lockUntilCommit(tx, "swap", "shared");
      return read(tx, await readCheckpoint(tx));
    });
}
