import { storedOffset } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { readCheckpoint } from "../projecting/checkpoint.ts";
import { queryClient } from "../testing/client.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { stage } from "../testing/stage.ts";
import { contents } from "../testing/tables.ts";
import { openDatabase } from "./database.ts";
import { migrate, NewerSchemaError, refusalOfPostgres } from "./migrate.ts";
import { migrations } from "./migrations/index.ts";

it("a database of an earlier version gets the migrations that it lacks, and is then refused by that version", async () => {
  await using fresh = await freshDatabase();
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const { db } = database;
  await migrate(database);
  await sql`insert into checkpoint (name, projection, epoch, position) values ('log', '', 'e', 1024)`.execute(db);

  const later = {
    ...migrations,
    "0002-next": {
      async up() {
        await sql`alter table checkpoint add column next int not null default 7`.execute(db);
      },
    },
  };
  await migrate(database, later);
  await migrate(database, later);
  const { rows } = await sql`select name, next from checkpoint`.execute(db);
  expect(rows).toEqual([{ name: "log", next: 7 }]);
  await expect(migrate(database)).rejects.toThrow(new NewerSchemaError("0002-next"));
});

it("a database that another version filled answers at once, and is rebuilt from the log", async () => {
  await using on = await stage();
  const end = (await on.write(randomEvents(seeded(8), 600))).at(-1) ?? 0;
  await using straight = await freshDatabase();
  await projectUntil(straight.url, on.log.reader, end);
  const expected = await contents(straight.url);

  await using old = openDatabase({ url: on.databaseUrl, connections: 1 });
  const projection = "sources.0 sessions.0";
  await old.db
    .insertInto("checkpoint")
    .values({ name: "log", projection, epoch: on.log.epoch, position: storedOffset(end) })
    .execute();

  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  // A busy database may let its first reader come again.
  const { position } = await until(() => ask.listOperations(), { message: "an answer" });
  expect(position).toBe(on.endAt(end));
  const isRebuilt = async () => expect(await contents(on.databaseUrl)).toEqual(expected) ?? true;
  await until(isRebuilt, { message: "the tables to be rebuilt" });
  expect((await readCheckpoint(old.db))?.projection).not.toBe(projection);
});

it.each([
  [150_018, "the database is of Postgres 15, and Tapedeck needs 16 or newer."],
  [160_000, undefined],
  [180_004, undefined],
])("a Postgres of version %i is refused where it is too old", (version, reason) => {
  expect(refusalOfPostgres(version)?.message).toBe(reason);
});
