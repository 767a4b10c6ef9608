import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "./database.ts";
import { AlreadyProjectedError, takeTables } from "./lock.ts";
import { migrate } from "./migrate.ts";
import { privateSchema } from "./private.ts";
import { readConsistently } from "./read.ts";

/** kysely's own, and those that a release before this one took. */
const guessed = ["3853314791062309107", "hashtext('tapedeck tables tapedeck')", "hashtext('tapedeck swap')"];

it("a role that may only connect can't keep query from starting, writing or reading", async () => {
  await using fresh = await freshDatabase();
  await using stranger = openDatabase({ url: fresh.url, connections: 1 });
  for (const key of guessed) await sql`select pg_advisory_lock(${sql.raw(key)})`.execute(stranger.db);
  const role = `stranger_${process.pid}`;
  await sql`create role ${sql.id(role)}`.execute(stranger.db);
  try {
    await using ours = openDatabase({ url: fresh.url, connections: 2 });
    await migrate(ours);
    await sql`set role ${sql.id(role)}`.execute(stranger.db);
    for (const name of ["migration", "swap", "writer_tapedeck"]) {
      const table = sql.table(`${privateSchema}.${name}`);
      const lock = stranger.db.transaction().execute((tx) => sql`lock table ${table} in access share mode`.execute(tx));
      await expect(lock).rejects.toThrow(/permission denied/);
    }
    await (await takeTables(ours))[Symbol.asyncDispose]();
    expect(await readConsistently(ours, "acme", async () => "read")).toBe("read");
  } finally {
    await sql`reset role`.execute(stranger.db);
    await sql`drop role ${sql.id(role)}`.execute(stranger.db);
  }
});

it("one process writes at a time, and does not block vacuum", async () => {
  await using fresh = await freshDatabase();
  await using one = openDatabase({ url: fresh.url, connections: 2 });
  await using other = openDatabase({ url: fresh.url, connections: 2 });
  await migrate(one);
  const first = await takeTables(one);
  await expect(takeTables(other)).rejects.toThrow(AlreadyProjectedError);
  const { rows } = await sql<{ xid: string | null; xmin: string | null }>`
    select backend_xid as xid, backend_xmin as xmin from pg_stat_activity
    where datname = current_database() and state = 'idle in transaction'`.execute(other.db);
  expect(rows).toEqual([{ xid: null, xmin: null }]);
  await first[Symbol.asyncDispose]();
  await until(() => isFree(other), { message: "the lock to be free" });
});

it("the loss of a lock is reported", async () => {
  await using fresh = await freshDatabase();
  await using one = openDatabase({ url: fresh.url, connections: 2 });
  await migrate(one);
  await using tables = await takeTables(one);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and state = 'idle in transaction'`.execute(one.db);
  await until(() => tables.lost.aborted, { message: "the lock to be lost" });
  expect(() => tables.lost.throwIfAborted()).toThrow("the connection that held the lock on the tables is gone");
});

async function isFree(database: Database): Promise<boolean> {
  await using _tables = await takeTables(database);
  return true;
}
