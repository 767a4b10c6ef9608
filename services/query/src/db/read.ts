import { sql } from "kysely";
import { readCheckpoint } from "../projecting/checkpoint.ts";
import type { Database, Tx } from "./database.ts";
import { lockUntilCommit } from "./lock.ts";
import { privateTable } from "./private.ts";
import type { CheckpointRow } from "./schema.ts";

/**
 * Waits until there is no reader or writer, and blocks both until the transaction ends, because the tables are about to
 * be swapped.
 */
export async function swapLock(tx: Tx): Promise<void> {
  await lockUntilCommit(tx, "swap", "alone");
}

/** The names of the tables mean the same ones until the transaction ends. */
export async function noSwapUntilCommit(tx: Tx): Promise<void> {
  await lockUntilCommit(tx, "swap", "shared");
}

/**
 * Begins a statement whose tables are all of one set. Postgres locks the tables of a statement in the order in which it
 * names them, so no swap comes between the first name and the last. One statement sees one snapshot.
 */
export const withoutSwap = sql`with without_swap as (select from ${privateTable("swap")})`;

/** What `tx` reads is of one moment. Until it is disposed it holds a connection, and a swap waits for it. */
type Snapshot = AsyncDisposable & { readonly tx: Tx };

export async function openSnapshot({ db }: Database): Promise<Snapshot> {
  const tx = await db.startTransaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute();
  // Fails only without its connection, and then the transaction is over, too.
  const close = () =>
    tx
      .rollback()
      .execute()
      .catch(() => {});
  try {
    await noSwapUntilCommit(tx);
  } catch (error) {
    await close();
    throw error;
  }
  return { tx, [Symbol.asyncDispose]: close };
}

/**
 * Reads one consistent snapshot: `read` sees the tables exactly as of the checkpoint. The checkpoint is undefined while
 * nothing is projected yet.
 */
export async function readConsistently<T>(
  database: Database,
  read: (tx: Tx, checkpoint: CheckpointRow | undefined) => Promise<T>,
): Promise<T> {
  await using snapshot = await openSnapshot(database);
  return await read(snapshot.tx, await readCheckpoint(snapshot.tx));
}
