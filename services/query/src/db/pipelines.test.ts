import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "./database.ts";
import { type Lane, Pipelines } from "./pipelines.ts";

it("a writer with much to do delays another one by the transactions before it, and no longer", async () => {
  await using fresh = await freshDatabase();
  await using database = openDatabase({ url: fresh.url, schema: "public", connections: 1 });
  await sql`create table written (nth int generated always as identity, name text)`.execute(database.db);
  await using pipelines = new Pipelines(database, 1);
  const [busy, other] = [pipelines.lane(), pipelines.lane()];
  const write = (lane: Lane, name: string, before?: () => void) =>
    lane.transaction(async (tx) => {
      await sql`insert into written (name) select * from unnest(${[name]}::text[])`.execute(tx);
      before?.();
    });
  // A writer with a backlog requests its next transaction while it still has the connection.
  let requested: ReturnType<typeof write>[] = [];
  await write(busy, "first", () => {
    requested = [write(other, "other"), write(busy, "second"), write(busy, "third")];
  });
  for (const { committed } of await Promise.all(requested)) await committed;
  const { rows } = await sql<{ name: string }>`select name from written order by nth`.execute(database.db);
  expect(rows.map(({ name }) => name)).toEqual(["first", "other", "second", "third"]);
});

it("opens a connection in place of one that is gone", async () => {
  await using fresh = await freshDatabase();
  await using database = openDatabase({ url: fresh.url, schema: "public", connections: 1 });
  await using pipelines = new Pipelines(database, 1);
  const lane = pipelines.lane();
  const pid = async () => {
    const { result, committed } = await lane.transaction(async (tx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx);
      return rows[0]?.pid;
    });
    await committed;
    return result;
  };
  const first = await pid();
  expect(await pid()).toBe(first);
  await sql`select pg_terminate_backend(${first})`.execute(database.db);
  const answered = () => pid().catch(() => undefined);
  await until(async () => ((await answered()) ?? first) !== first, { message: "another connection" });
});
