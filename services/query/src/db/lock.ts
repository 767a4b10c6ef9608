import { type Kysely, sql } from "kysely";
import pg from "pg";
import type { Database, Tx } from "./database.ts";
import { makeOnce, privateSchema, privateTable } from "./private.ts";
import type { Schema } from "./schema.ts";

/** Another process writes these tables. */
export class AlreadyProjectedError extends Error {
  override readonly name = "AlreadyProjectedError";
}

/**
 * Names of our locks. Each is an empty table that only our own user may touch: an advisory lock can be taken by whoever
 * may connect, who would keep us from starting for ever.
 */
type LockName = "migration" | "swap" | `writer_${string}`;

/**
 * Runs `use` on one connection, while no other process may write the tables of its schema, and gives it back when `use` is
 * left. `held` aborts when the lock is lost. It goes with its own connection, so a process that dies leaves none behind.
 * @throws AlreadyProjectedError at once when another has it
 */
export async function* withTables<T>(
  database: Database,
  use: (connection: Kysely<Schema>, held: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  await using lock = await hold(database, `writer_${database.schema}`, "nowait");
  if (lock === undefined) throw new AlreadyProjectedError("another query writes these tables");
  const connection = await pinned(database.db);
  try {
    yield* use(connection.db, lock.lost);
    lock.lost.throwIfAborted();
  } finally {
    connection.release();
  }
}

/** Runs `use` while nobody else brings the schema up to date; waits for who does. */
export async function whileMigrating(database: Database, use: () => Promise<void>): Promise<void> {
  await using _lock = await hold(database, "migration", "wait");
  await use();
}

/** Keeps others out of a lock, or with "shared" those who want it alone, until the transaction ends. */
export async function lockUntilCommit(tx: Tx, name: LockName, mode: "alone" | "shared"): Promise<void> {
  await sql`lock table ${privateTable(name)} in ${sql.raw(mode === "alone" ? "access exclusive" : "access share")} mode`.execute(
    tx,
  );
}

/** Makes the locks that transactions take: within one it would be too late. */
export async function makeLocks({ db }: Pick<Database, "db">): Promise<void> {
  await makeLock(db, "swap");
}

type Held = AsyncDisposable & { readonly lost: AbortSignal };

/**
 * Holds a lock on a connection of its own, in a transaction that does nothing else: without a snapshot it keeps nothing
 * from being vacuumed. Undefined: somebody else has it.
 */
async function hold(database: Database, name: LockName, patience: "wait" | "nowait"): Promise<Held | undefined> {
  await makeLock(database.db, name);
  const client = await database.connect();
  const lost = new AbortController();
  client.once("end", () => lost.abort(new Error("the connection that held the lock on the tables is gone")));
  const close = () => client.end().catch(() => {});
  try {
    // The settings of a server of the user's may end a transaction that is idle.
    await client.query("select set_config(name, '0', false) from pg_settings where name = any($1)", [patient]);
    await client.query("begin");
    const table = `${privateSchema}.${pg.escapeIdentifier(name)}`;
    await client.query(`lock table ${table} in exclusive mode${patience === "wait" ? "" : " nowait"}`);
  } catch (error) {
    await close();
    if (error instanceof pg.DatabaseError && error.code === lockNotAvailable) return undefined;
    throw error;
  }
  return { lost: lost.signal, [Symbol.asyncDispose]: close };
}

const lockNotAvailable = "55P03";

const patient = [
  "idle_in_transaction_session_timeout",
  "idle_session_timeout",
  "lock_timeout",
  "statement_timeout",
  "transaction_timeout",
];

/** Partitioned, and without a partition: it has no storage, so no vacuum ever waits for a lock that is held for months. */
async function makeLock(db: Kysely<Schema>, name: LockName): Promise<void> {
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${`${privateSchema}.${pg.escapeIdentifier(name)}`}) is not null as there`.execute(db);
  if (rows[0]?.there === true) return;
  await makeOnce(db, async (made) => {
    await sql`create schema if not exists ${sql.id(privateSchema)}`.execute(made);
    await sql`create table if not exists ${privateTable(name)} (nothing int) partition by list (nothing)`.execute(made);
  });
}

/** kysely lends a connection for the length of a callback only. */
async function pinned(db: Kysely<Schema>): Promise<{ readonly db: Kysely<Schema>; readonly release: () => void }> {
  const lent = Promise.withResolvers<Kysely<Schema>>();
  const done = Promise.withResolvers<void>();
  db.connection()
    .execute(async (connection) => {
      lent.resolve(connection);
      await done.promise;
    })
    .catch(lent.reject);
  return { db: await lent.promise, release: done.resolve };
}
