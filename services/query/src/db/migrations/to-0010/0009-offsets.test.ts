import { endOf, offsetOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { sql } from "kysely";
import { Migrator } from "kysely/migration";
import { expect, it } from "vitest";
import { migrated } from "../../../testing/migrated.ts";
import { contents, rktOrder, vagrantOrder } from "../../../testing/tables.ts";
import { type Database, openDatabase } from "../../database.ts";
import { migrate } from "../../migrate.ts";
import { migrations } from "../index.ts";

const epoch = "t3k9x2";

it("position_text writes a position as the API does", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  await database.db
    .insertInto("checkpoint")
    .values({ name: "log", projection: "", epoch, position: offsetOf(1) })
    .execute();
  const random = seeded("position texts");
  const offsets = Array.from({ length: 5_000 }, (_, index) => {
    const sequence = index < 2_000 ? index : 2 ** random.below(43) + random.below(2 ** random.below(31));
    return [offsetOf(sequence), offsetOf(sequence, random.below(1_024)), endOf(sequence)];
  }).flat();
  const { rows } = await sql<{ text: string }>`
    select position_text(log_offset) as text from unnest(${offsets.map(String)}::bigint[]) with ordinality as t (log_offset, nth)
    order by nth`.execute(database.db);
  expect(rows.map(({ text }) => text)).toEqual(offsets.map((offset) => formatPosition({ epoch, offset })));
});

it("positions in every table of a database from before become offsets", async () => {
  await using fresh = await freshDatabase();
  await using old = openDatabase({ url: fresh.url, connections: 1 });
  const before = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < "0009"));
  await sql`create schema if not exists ${sql.id(old.schema)}`.execute(old.db);
  const migrator = new Migrator({
    db: old.db,
    provider: { getMigrations: async () => before },
    migrationTableSchema: old.schema,
  });
  expect((await migrator.migrateToLatest()).error).toBeUndefined();
  await sql`create table events_all partition of events default`.execute(old.db);
  const columns = await positionColumns(old);
  // Rows whose new position another row had before: 1, 1,024 and 1,024 × 1,024.
  for (const table of new Set(columns.map((one) => one.table))) await fill(old, table, [1, 1_024, 1_048_576]);
  await migrate(old);
  for (const { table, column } of columns) {
    const { rows } = await sql<{ position: number }>`
      select distinct ${sql.ref(column)} as position from ${sql.table(table)} order by 1`.execute(old.db);
    const isWhole = table === "checkpoint" && column === "position";
    const expected = [1, 1_024, 1_048_576].map((sequence) => (isWhole ? endOf(sequence) : offsetOf(sequence)));
    expect({ table, column, rows: rows.map(({ position }) => position) }).toEqual({ table, column, rows: expected });
  }
  expect(columns.length).toBeGreaterThan(25);
  for (const order of [rktOrder, vagrantOrder]) await contents(fresh.url, order);
});

/** Every column of a table that holds a position. */
async function positionColumns({ db }: Database) {
  const { rows } = await sql<{ table: string; column: string }>`
    select relname as table, attname as column from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
      and attnum > 0 and atttypid = 'bigint'::regtype and attname ~ '(^|_)position$'
    order by 1, 2`.execute(db);
  return rows;
}

/** A row for each position, in which all columns that must have a value have one. */
async function fill({ db }: Database, table: string, positions: readonly number[]): Promise<void> {
  const { rows } = await sql<{ column: string; type: string; fits: boolean; needed: boolean }>`
    select attname as column, format_type(atttypid, null) as type, attname ~ '(^|_)position$' as fits,
      attnotnull as needed
    from pg_attribute where attrelid = ${table}::regclass and attnum > 0 and not attisdropped`.execute(db);
  const written = rows.filter(({ fits, needed }) => fits || needed);
  for (const position of positions) {
    const values = written.map(({ fits, type }) => (fits ? sql`${position}::bigint` : anyValue(type, position)));
    await sql`insert into ${sql.table(table)} (${sql.join(written.map(({ column }) => sql.ref(column)))})
      values (${sql.join(values)})`.execute(db);
  }
}

/** The same moment for all rows of `events`, whose key has it beside the position. */
function anyValue(type: string, position: number) {
  if (type === "text") return sql`${`row ${position}`}`;
  if (type === "boolean") return sql`false`;
  if (type === "jsonb") return sql`'{}'::jsonb`;
  if (type === "bytea") return sql`''::bytea`;
  if (type.startsWith("timestamp")) return sql`'2026-01-01T00:00:00Z'::timestamptz`;
  if (type.endsWith("[]")) return sql`'{}'`;
  return sql`0`;
}
