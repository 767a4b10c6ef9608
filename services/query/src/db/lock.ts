import { type Kysely, sql } from "kysely";
import pg from "pg";
import type { Database, Tx } from "./database.ts";
import { Pipelines } from "./pipelines.ts";
import { makeOnce, privateSchema, privateTable } from "./private.ts";
import type { Schema } from "./schema.ts";

/** Another process writes these tables. */
export class AlreadyProjectedError extends Error {
  override readonly name = "AlreadyProjectedError";
}

/**
 * Each lock is an empty table that only query's own database user may touch. Any role that may connect can take an
 * advisory lock, and so could keep query from starting forever.
 */
type LockName = "migration" | "swap" | `writer_${string}`;

/** The tables of a schema, which no other process may write meanwhile. */
export type TakenTables = AsyncDisposable & {
  readonly pipelines: Pipelines;
  /** Aborts when the lock is lost. */
  readonly lost: AbortSignal;
};

/**
 * Takes the tables of the database's schema until it is disposed. The lock belongs to a connection of its own, so a process
 * that dies does not leave it behind.
 * @throws AlreadyProjectedError at once when another process has them
 */
export async function takeTables(database: Database): Promise<TakenTables> {
  await using stack = new AsyncDisposableStack();
  const lock = await hold(database, `writer_${database.schema}`, "nowait");
  if (lock === undefined) throw new AlreadyProjectedError("another query writes these tables");
  stack.use(lock);
  const pipelines = stack.use(new Pipelines(database));
  const taken = stack.move();
  return { pipelines, lost: lock.lost, [Symbol.asyncDispose]: () => taken.disposeAsync() };
}

/** Runs `use` while no other process migrates the schema; waits for one that does. */
export async function whileMigrating(database: Database, use: () => Promise<void>): Promise<void> {
  await using _lock = await hold(database, "migration", "wait");
  await use();
}

/** Holds a lock until the transaction ends: alone, or shared with others that share it. */
export async function lockUntilCommit(tx: Tx, name: LockName, mode: "alone" | "shared"): Promise<void> {
  await sql`lock table ${privateTable(name)} in ${sql.raw(mode === "alone" ? "access exclusive" : "access share")} mode`.execute(
    tx,
  );
}

/** Creates the locks that transactions take, because a transaction can't create them itself. */
export async function makeLocks({ db }: Pick<Database, "db">): Promise<void> {
  await makeLock(db, "swap");
}

type Held = AsyncDisposable & { readonly lost: AbortSignal };

/**
 * Holds a lock on a connection of its own, in a transaction that does nothing else. Such a transaction has no snapshot, so
 * it does not block vacuum. Undefined: another process holds the lock.
 */
async function hold(database: Database, name: LockName, mode: "wait" | "nowait"): Promise<Held | undefined> {
  await makeLock(database.db, name);
  const client = await database.connect();
  const lost = new AbortController();
  client.once("end", () => lost.abort(new Error("the connection that held the lock on the tables is gone")));
  const close = () => client.end().catch(() => {});
  try {
    // A server that Tapedeck does not configure may end idle transactions.
    await client.query("select set_config(name, '0', false) from pg_settings where name = any($1)", [patient]);
    await client.query("begin");
    const table = `${privateSchema}.${pg.escapeIdentifier(name)}`;
    await client.query(`lock table ${table} in exclusive mode${mode === "wait" ? "" : " nowait"}`);
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

/** A partitioned table without partitions has no storage, so vacuum never waits for a lock that is held for months. */
async function makeLock(db: Kysely<Schema>, name: LockName): Promise<void> {
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${`${privateSchema}.${pg.escapeIdentifier(name)}`}) is not null as there`.execute(db);
  if (rows[0]?.there === true) return;
  await makeOnce(db, async (made) => {
    await sql`create schema if not exists ${sql.id(privateSchema)}`.execute(made);
    await sql`create table if not exists ${privateTable(name)} (nothing int) partition by list (nothing)`.execute(made);
  });
}
