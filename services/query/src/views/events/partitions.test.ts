import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { migrated } from "../../testing/migrated.ts";
import { ensurePartitions } from "./partitions.ts";

/** The partitions, and the indexes of each that belong to one of `events`. */
async function partitions({ db }: Database) {
  const { rows } = await sql<{ name: string; bounds: string; indexes: number }>`
    select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds,
      (select count(*) from pg_index i join pg_inherits h on h.inhrelid = i.indexrelid where i.indrelid = c.oid) as indexes
    from pg_inherits h join pg_class c on c.oid = h.inhrelid where h.inhparent = 'events'::regclass order by 1`.execute(
    db,
  );
  return rows;
}

async function insertEvent({ db }: Database, recordedAt: string, position: number): Promise<void> {
  const columns = ["source", "workspace", "developer", "project", "upstream", "id", "session", "channel", "kind"];
  const more = ["subject", "error_code", "error", "summary", "time_source"];
  const texts = [...columns, ...more];
  await sql`
    insert into events (position, recorded_at, ordinal, frame_ordinal, part, occurred_ns, inferred, injected, redacted,
      ${sql.raw(texts.join(", "))})
    select ${position}, ${recordedAt}::timestamptz, 1, 1, 0, 0, false, false, 0, ${sql.raw(texts.map(() => "''").join(", "))}`.execute(
    db,
  );
}

it("the first event of a month waits for no reader, and no reader waits for it", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 2 });
  await using readers = openDatabase({ url: fresh.url, connections: 2 });
  const ensure = (...timestamps: string[]) =>
    database.db.transaction().execute((tx) => ensurePartitions(tx, timestamps));
  await ensure("2026-11-30T23:59:59.999Z");
  await insertEvent(database, "2026-11-30T23:59:59.999Z", 1);
  // What would wait for a lock fails instead.
  await sql`alter database ${sql.id(new URL(fresh.url).pathname.slice(1))} set lock_timeout = '2s'`.execute(
    database.db,
  );
  await using hurried = openDatabase({ url: fresh.url, connections: 2 });

  await readers.db.transaction().execute(async (idle) => {
    const counted = async (on: Pick<Database, "db">) =>
      (await sql`select position from events order by 1`.execute(on.db)).rows;
    expect((await sql`select position from events`.execute(idle)).rows).toEqual([{ position: 1 }]);
    await hurried.db.transaction().execute(async (tx) => {
      await ensurePartitions(tx, ["2026-12-01T00:00:00.000Z"]);
      // Also while the new partition is not committed yet.
      expect(await counted(readers)).toEqual([{ position: 1 }]);
    });
    await insertEvent(hurried, "2026-12-01T00:00:00.000Z", 2);
    expect(await counted(hurried)).toEqual([{ position: 1 }, { position: 2 }]);
    expect((await sql`select position from events order by 1`.execute(idle)).rows).toEqual([
      { position: 1 },
      { position: 2 },
    ]);
  });
});

it("makes months of any time once, with the indexes of events, and none that is there", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const ensure = (...timestamps: string[]) =>
    database.db.transaction().execute((tx) => ensurePartitions(tx, timestamps));
  // This month is there already.
  await sql`create table events_2026_10 partition of events for values from ('2026-10-01Z') to ('2026-11-01Z')`.execute(
    database.db,
  );
  await ensure("2026-10-05T00:00:00Z", "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "2026-12-31T00:00:00Z");
  await ensure("2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "1970-01-31T00:00:00Z");
  const all = await partitions(database);
  expect(all.map(({ name }) => name)).toEqual([
    ...["events_1970_01", "events_2026_10", "events_2026_12", "events_2027_01", "events_9999_12"],
  ]);
  const { rows } = await sql<{
    n: number;
  }>`select count(*) as n from pg_index where indrelid = 'events'::regclass`.execute(database.db);
  expect(new Set(all.map(({ indexes }) => indexes))).toEqual(new Set([rows[0]?.n]));
  for (const [index, at] of ["1970-01-01Z", "2026-12-31 23:59:59Z", "9999-12-31 23:59:59Z"].entries()) {
    await insertEvent(database, at, index);
  }
});

it("two workspaces have their first events of a month at once", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 3 });
  const month = ["2026-11-30T23:59:59.999Z"];
  let other: Promise<void> | undefined;
  await database.db.transaction().execute(async (tx) => {
    await ensurePartitions(tx, month);
    other = database.db.transaction().execute((second) => ensurePartitions(second, month));
    other.catch(() => {});
    const waits = async () => {
      const { rows } = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
        database.db,
      );
      return rows.length === 1;
    };
    await until(waits, { message: "the other one to wait for the first" });
  });
  await other;
  expect(await partitions(database)).toMatchObject([{ name: "events_2026_11" }]);
});
