import { sql } from "kysely";
import { readCheckpoint } from "./checkpoint.ts";
import type { Database, Tx } from "./database.ts";
import { lockUntilCommit } from "./lock.ts";
import { beginReading } from "./pipeline.ts";
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

export async function openSnapshot(database: Database): Promise<Snapshot> {
  await using stack = new AsyncDisposableStack();
  const { tx, started } = stack.use(await beginReading(database));
  await Promise.all([started, noSwapUntilCommit(tx)]);
  const owned = stack.move();
  return { tx, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * Reads one consistent snapshot: `read` sees the tables of the workspace exactly as of the checkpoint. The checkpoint is
 * undefined while nothing is projected yet.
 */
export async function readConsistently<T>(
  database: Database,
  workspace: string,
  read: (tx: Tx, checkpoint: CheckpointRow | undefined) => Promise<T>,
): Promise<T> {
  await using reading = await beginReading(database);
  const { tx, started } = reading;
  // The lock comes first, because the snapshot is that of the first statement which reads.
  const [, , checkpoint] = await Promise.all([started, noSwapUntilCommit(tx), readCheckpoint(tx, workspace)]);
  return await read(tx, checkpoint);
}
