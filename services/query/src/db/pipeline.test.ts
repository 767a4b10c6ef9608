import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase, type Tx } from "./database.ts";
import { openPipeline } from "./pipeline.ts";

/** A table that takes a number twice until the commit. */
async function numbers() {
  await using stack = new AsyncDisposableStack();
  const fresh = stack.use(await freshDatabase());
  const database: Database = stack.use(openDatabase({ url: fresh.url, schema: "public", connections: 1 }));
  await sql`create table numbers (n int unique deferrable initially deferred)`.execute(database.db);
  const pipeline = stack.use(await openPipeline(database));
  const all = stack.move();
  return {
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

it("reports a commit that fails, and one of a transaction in which a statement had failed", async () => {
  await using on = await numbers();
  const { pipeline, add } = on;
  const twice = await pipeline.transaction((tx) => Promise.all([add(tx, 1), add(tx, 1)]));
  const behind = await pipeline.transaction((tx) => add(tx, 2));
  await expect(twice.committed).rejects.toThrow("duplicate key");
  await behind.committed;
  const ignored = await pipeline.transaction((tx) => sql`select 1 / 0`.execute(tx).catch(() => {}));
  await expect(ignored.committed).rejects.toThrow("could not be committed");
  expect(await on.there()).toEqual([2]);
});

it("fails whatever waits when the connection is lost", async () => {
  await using on = await numbers();
  const lost = on.pipeline.transaction((tx) => sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx));
  await expect(lost).rejects.toThrow(/terminat/);
  await expect(on.pipeline.transaction((tx) => on.add(tx, 1))).rejects.toThrow();
});
