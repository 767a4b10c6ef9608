import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "./database.ts";
import { migrate, NewerSchemaError, refusalOfPostgres } from "./migrate.ts";
import { migrations } from "./migrations/index.ts";

it("a database of an earlier version gets the migrations that it lacks, and is then refused by that version", async () => {
  await using fresh = await freshDatabase();
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const { db } = database;
  await migrate(database);
  await sql`insert into checkpoint (workspace, projection, epoch, position) values ('acme', '', 'e', 1024)`.execute(db);

  const later = {
    ...migrations,
    "0002-next": {
      async up(transaction: typeof db) {
        await sql`alter table checkpoint add column next int not null default 7`.execute(transaction);
      },
    },
  };
  await migrate(database, later);
  await migrate(database, later);
  const { rows } = await sql`select workspace, next from checkpoint`.execute(db);
  expect(rows).toEqual([{ workspace: "acme", next: 7 }]);
  await expect(migrate(database)).rejects.toThrow(new NewerSchemaError("0002-next"));
});

it.each([
  [150_018, "the database is of Postgres 15, and Tapedeck needs 16 or newer."],
  [160_000, undefined],
  [180_004, undefined],
])("a Postgres of version %i is refused where it is too old", (version, reason) => {
  expect(refusalOfPostgres(version)?.message).toBe(reason);
});
