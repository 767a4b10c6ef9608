import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { migrated } from "../testing/migrated.ts";
import { openDatabase } from "./database.ts";
import { PlanStatistics } from "./plan-statistics.ts";

it("new tables have statistics after 2,000 events, and again when they have grown eightfold", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url });
  const known = async () => {
    const { rows } = await sql<{ known: number }>`
      select reltuples as known from pg_class where oid = to_regclass('labels_of_test')`.execute(database.db);
    return rows[0]?.known;
  };
  // Any table of the schema is analyzed.
  await sql`create table labels_of_test as select n from generate_series(1, 100) n`.execute(database.db);
  const after = async (...events: readonly number[]) => {
    await using statistics = new PlanStatistics(database);
    for (const count of events) statistics.wrote(count);
  };
  await after(1_999);
  expect(await known()).toBe(-1);
  await after(1_999, 1);
  expect(await known()).toBe(100);
  await sql`insert into labels_of_test select n from generate_series(1, 50) n`.execute(database.db);
  // What Postgres knows of a database that is not new.
  await sql`update pg_class set reltuples = 1000 where oid = to_regclass('operations')`.execute(database.db);
  await after(2_000, 5_999);
  expect(await known()).toBe(100);
  await after(2_000, 14_000);
  expect(await known()).toBe(150);
});
