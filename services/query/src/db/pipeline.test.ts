import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase, type Tx } from "./database.ts";
import { beginReading, openPipeline, plannedOnce } from "./pipeline.ts";

/** A table that takes a number twice until the commit. */
async function numbers() {
  await using stack = new AsyncDisposableStack();
  const fresh = stack.use(await freshDatabase());
  const database: Database = stack.use(openDatabase({ url: fresh.url, schema: "public", connections: 1 }));
  await sql`create table numbers (n int unique deferrable initially deferred)`.execute(database.db);
  const pipeline = stack.use(await openPipeline(database));
  const all = stack.move();
  return {
    url: fresh.url,
    pipeline,
    add: (tx: Tx, n: number) => sql`insert into numbers select * from unnest(${[n]}::int[])`.execute(tx),
    async there(): Promise<readonly number[]> {
      const { rows } = await sql<{ n: number }>`select n from numbers order by n`.execute(database.db);
      return rows.map(({ n }) => n);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

it("runs statements in the order in which they were sent, also behind a commit that is under way", async () => {
  await using on = await numbers();
  const { pipeline, add } = on;
  const first = await pipeline.transaction(async (tx) => {
    const [, counted] = await Promise.all([
      add(tx, 1),
      sql<{ n: string }>`select count(*)::text as n from numbers`.execute(tx),
      add(tx, 2),
    ]);
    return counted.rows[0]?.n;
  });
  const second = await pipeline.transaction((tx) => add(tx, 3));
  expect(first.result).toBe("1");
  await Promise.all([first.committed, second.committed]);
  expect(await on.there()).toEqual([1, 2, 3]);
});

it("leaves nothing of a transaction whose work failed, and goes on", async () => {
  await using on = await numbers();
  const { pipeline, add } = on;
  const failed = pipeline.transaction(async (tx) => {
    await Promise.all([add(tx, 1), sql`select 1 / 0`.execute(tx), add(tx, 2)]);
  });
  await expect(failed).rejects.toThrow("division by zero");
  const { committed } = await pipeline.transaction((tx) => add(tx, 3));
  await committed;
  expect(await on.there()).toEqual([3]);
});

it("reports the statement that failed, and not those that failed because of it, whichever is awaited first", async () => {
  await using on = await numbers();
  const spoiled = (tx: Tx) => [sql`select 1 / 0`.execute(tx), on.add(tx, 1), sql`select 'x'::int`.execute(tx)] as const;
  const backwards = async (tx: Tx) => {
    const statements = spoiled(tx);
    for (const statement of statements) statement.catch(() => {});
    for (const statement of statements.toReversed()) await statement;
  };
  const failed = on.pipeline.transaction(backwards);
  await expect(failed).rejects.toMatchObject({ name: "StatementError", code: "22012", message: "division by zero" });
  const ownError = on.pipeline.transaction(async (tx) => {
    await Promise.allSettled(spoiled(tx));
    throw new RangeError("a consequence");
  });
  await expect(ownError).rejects.toMatchObject({ name: "StatementError", code: "22012" });
  const behind = on.pipeline.transaction(async () => {
    throw new RangeError("the work's own");
  });
  await expect(behind).rejects.toMatchObject({ name: "RangeError", message: "the work's own" });
  await using database = openDatabase({ url: on.url, schema: "public", connections: 1 });
  await expect(reading(database, backwards)).rejects.toThrow("division by zero");
});

it("reports a commit that fails, and one of a transaction in which a statement had failed", async () => {
  await using on = await numbers();
  const { pipeline, add } = on;
  const twice = await pipeline.transaction((tx) => Promise.all([add(tx, 1), add(tx, 1)]));
  const behind = await pipeline.transaction((tx) => add(tx, 2));
  await expect(twice.committed).rejects.toThrow("duplicate key");
  await behind.committed;
  const ignored = await pipeline.transaction((tx) => sql`select 1 / 0`.execute(tx).catch(() => {}));
  await expect(ignored.committed).rejects.toThrow("division by zero");
  expect(await on.there()).toEqual([2]);
});

it("fails whatever waits when the connection is lost", async () => {
  await using on = await numbers();
  const lost = on.pipeline.transaction((tx) => sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx));
  await expect(lost).rejects.toThrow(/terminat/);
  await expect(on.pipeline.transaction((tx) => on.add(tx, 1))).rejects.toThrow();
});

it("reads a table by its index with a plan that was made while it had one row", async () => {
  await using on = await numbers();
  await using database = openDatabase({ url: on.url, schema: "public", connections: 1 });
  await sql`insert into numbers values (1)`.execute(database.db);
  await sql`analyze numbers`.execute(database.db);
  const read = (tx: Tx) => sql<{ n: number }>`${plannedOnce} select n from numbers where n = ${1}`.execute(tx);
  await (await on.pipeline.transaction(read)).committed;
  await sql`insert into numbers select generate_series(2, 20000)`.execute(database.db);
  const { result: plan } = await on.pipeline.transaction(async (tx) => {
    const { rows: prepared } = await sql<{ name: string; plans: number }>`
      select name, generic_plans as plans from pg_prepared_statements where statement like '%from numbers%'`.execute(
      tx,
    );
    expect(prepared).toMatchObject([{ plans: 1 }]);
    return sql`explain execute ${sql.id(prepared[0]?.name ?? "")} (1)`.execute(tx);
  });
  expect(JSON.stringify(plan.rows)).toMatch(/Index.* Scan using numbers/);
});

it("ends a connection whose statements were planned for other columns of a table", async () => {
  await using on = await numbers();
  const read = (tx: Tx) => sql`${plannedOnce} select * from numbers`.execute(tx);
  await (await on.pipeline.transaction(read)).committed;
  await using database = openDatabase({ url: on.url, schema: "public", connections: 1 });
  await sql`alter table numbers add column more text`.execute(database.db);
  await expect(on.pipeline.transaction(read)).rejects.toThrow("cached plan must not change result type");
  await until(() => on.pipeline.isLost(), { message: "the end of the connection" });
});

async function reading<T>(database: Database, read: (tx: Tx) => Promise<T>): Promise<T> {
  await using begun = await beginReading(database);
  return await read(begun.tx);
}

it("reads one snapshot with the settings of its database, and goes on after a read that failed", async () => {
  await using on = await numbers();
  await using database = openDatabase({ url: on.url, schema: "public", connections: 1, statementTimeoutMs: 7_000 });
  const counted = async (tx: Tx) =>
    (await sql<{ n: number }>`select count(*) as n from numbers`.execute(tx)).rows[0]?.n;
  const settings = await reading(database, async (tx) => {
    const { rows } =
      await sql`select current_setting('search_path') as schema, current_setting('statement_timeout') as ms`.execute(
        tx,
      );
    return rows;
  });
  expect(settings).toEqual([{ schema: "public, public_internal", ms: "7s" }]);
  await expect(reading(database, (tx) => sql`select 1 / 0`.execute(tx))).rejects.toThrow("division by zero");
  await expect(reading(database, (tx) => on.add(tx, 1))).rejects.toThrow("read-only transaction");
  const before = await reading(database, async (tx) => {
    const first = await counted(tx);
    await (await on.pipeline.transaction((other) => on.add(other, 1))).committed;
    return [first, await counted(tx)];
  });
  expect(before).toEqual([0, 0]);
  expect(await reading(database, counted)).toBe(1);
  expect((await sql`select 1 as one`.execute(database.db)).rows).toEqual([{ one: 1 }]);
});
