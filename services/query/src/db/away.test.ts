import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { unlessSilent } from "./away.ts";
import { openDatabase } from "./database.ts";

it("a Postgres that takes long for one answer is waited for while it gives others", async () => {
  await using own = await freshDatabase();
  await using database = openDatabase({ url: own.url, connections: 2 });
  const { rows } = await unlessSilent(database, sql`select 1 as one from pg_sleep(4)`.execute(database.db));
  expect(rows).toEqual([{ one: 1 }]);
});
