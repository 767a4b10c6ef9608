import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { zoneName } from "./time-zone.ts";

const cleanup = new AsyncDisposableStack();
let database: Database;
const known = new Set<string>();

beforeAll(async () => {
  const { url } = cleanup.use(await freshDatabase());
  database = cleanup.use(openDatabase({ url, schema: "public" }));
  const { rows } = await sql<{ name: string }>`select name from pg_timezone_names`.execute(database.db);
  for (const { name } of rows) known.add(name);
});
afterAll(() => cleanup.disposeAsync());

it("a zone is called as the client called it, where Postgres has that name", async () => {
  for (const name of ["Asia/Kolkata", "Asia/Calcutta", "Europe/Kyiv", "Europe/Kiev", "US/Pacific"]) {
    if (known.has(name)) expect(await zoneName(database, name)).toBe(name);
  }
  expect(await zoneName(database, "europe/berlin")).toBe("Europe/Berlin");
  expect(await zoneName(database, "")).toBe("UTC");
});

it("every zone that this Node and Postgres have is taken, by a name of Postgres", async () => {
  for (const zone of [...known, ...Intl.supportedValuesOf("timeZone")])
    expect(known).toContain(await zoneName(database, zone));
});

it.each(["Nowhere/City", "+05:30", "-14", "FOO5", "GMT+5:30", " ", "Europe/Berlin ", "'", "../UTC"])(
  "%j is refused",
  async (zone) => {
    await expect(zoneName(database, zone)).rejects.toMatchObject({
      code: "invalid_argument",
      details: { field: "zone" },
    });
  },
);
