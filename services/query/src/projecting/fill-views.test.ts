import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "../db/database.ts";
import { scenario } from "../testing/scenario.ts";
import { reaches, type Stage, stage } from "../testing/stage.ts";
import { ViewFiller } from "./fill-views.ts";

/** A materialized view that can't be filled, and one whose filling waits until the gate is opened. */
async function withViews(database: Database) {
  const { db } = database;
  // Not of the pool, which closes connections that rest.
  const gate = await database.connect();
  const statements = [
    "create table public.divisors as select 1 as n",
    "create materialized view public.failing as select 1 / n as part, (select count(*) from tapedeck.sessions) from public.divisors",
    "update public.divisors set n = 0",
    "create function public.gate() returns bigint language sql as 'select count(pg_advisory_xact_lock_shared(7)::text)'",
    "create materialized view public.slow as select public.gate() as gate, count(*) as n from tapedeck.sessions",
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
  await gate.query("select pg_advisory_lock(7)");
  const count = async (query: string) => Number((await sql.raw<{ n: number }>(query).execute(db)).rows[0]?.n);
  return {
    [Symbol.asyncDispose]: () => gate.end(),
    filled: () => count("select count(*) as n from pg_class where relname = 'slow' and relispopulated"),
    filling: () =>
      count(
        "select count(*) as n from pg_stat_activity where query like 'refresh%slow' and state = 'active' and datname = current_database()",
      ),
  };
}

async function projected(on: Stage): Promise<void> {
  const script = scenario();
  script.session("s1").started();
  const seqs = await on.write(script.events);
  await using query = await on.startQuery();
  await reaches(query, seqs.at(-1) ?? 0);
}

it("projects after a rebuild while the materialized views of others are still filled", async () => {
  await using on = await stage();
  await projected(on);
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  await using gate = await withViews(tables);
  const { filled, filling } = gate;
  await tables.db.updateTable("checkpoint").set({ projection: "of an earlier version" }).execute();
  await using query = await on.startQuery();
  const more = scenario();
  more.session("s2").started();
  await reaches(query, (await on.write(more.events)).at(-1) ?? 0);
  await until(async () => (await filling()) === 1, { message: "the view to be filled" });
  expect(await filled()).toBe(0);
  await gate[Symbol.asyncDispose]();
  await until(async () => (await filled()) === 1, { message: "a view that is filled" });
});

it("names what is not filled, and ends the statement that fills when it is stopped", async () => {
  await using on = await stage();
  await projected(on);
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  await using gate = await withViews(tables);
  const { filling } = gate;
  const warnings: unknown[] = [];
  const logger = { warn: (fields: unknown) => void warnings.push(fields) };
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  {
    await using filler = new ViewFiller(database, logger);
    filler.fill(["public.failing", "public.slow"]);
    filler.fill(["public.failing"]);
    await until(async () => (await filling()) === 1, { message: "the view to be filled" });
    expect(warnings).toMatchObject([{ view: "public.failing", err: { message: "division by zero" } }]);
  }
  expect(await filling()).toBe(0);
  expect(warnings.slice(1)).toMatchObject([{ view: "public.slow" }, { view: "public.failing" }]);
});
