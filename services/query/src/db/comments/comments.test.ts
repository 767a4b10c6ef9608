import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { migrated } from "../../testing/migrated.ts";
import { readable } from "../access/relations.ts";
import { openDatabase } from "../database.ts";
import { migrate } from "../migrate.ts";
import { comments, readComments } from "./apply.ts";

it("every relation and column that an analyst sees has a comment, and no comment is about anything else", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const { rows } = await sql<{ relation: string; column: string }>`
    select relname as relation, attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid
    where relnamespace = ${database.schema}::regnamespace and relname = any(${Object.keys(readable)}::text[])
      and attnum > 0 and not attisdropped`.execute(database.db);
  const columns = Map.groupBy(rows, ({ relation }) => relation);
  const found = await readComments(database);
  for (const relation of Object.keys(readable)) {
    expect(Object.keys(comments[relation]?.columns ?? {}).toSorted(), relation).toEqual(
      columns
        .get(relation)
        ?.map(({ column }) => column)
        .toSorted(),
    );
    expect(found.filter((one) => one.relation === relation && one.comment === "")).toEqual([]);
  }
  expect(Object.keys(comments).toSorted()).toEqual(Object.keys(readable).toSorted());
});

it("a comment that was changed is set again by the next start", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 2 });
  const before = await readComments(database);
  await sql`comment on view tapedeck.loops is 'changed'`.execute(database.db);
  await sql`comment on column tapedeck.operations.kind is null`.execute(database.db);
  await migrate(database);
  expect(await readComments(database)).toEqual(before);
});
