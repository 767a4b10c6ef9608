import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { migrated } from "../../../testing/migrated.ts";
import { type Database, openDatabase } from "../../database.ts";

it("red_times follow every insert, update and delete of loops, in any order", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const { db } = database;
  const expectRight = async () => expect(await reds(database)).toEqual(await redsByDefinition(database));
  await insertLoops(database, "1 and 400");
  await expectRight();
  expect((await reds(database)).length).toBeGreaterThan(20);
  // Between the others, at their ends, one by one, and many in one statement.
  await insertLoops(database, "1001 and 1400");
  await expectRight();
  for (const loop of [401, 402, 990, 1_401, 500, 501]) {
    await insertLoops(database, `${loop} and ${loop}`);
    await expectRight();
  }
  const changes = [
    sql`update finished_loops set outcome = 'succeeded' where loop % 17 = 3`,
    sql`update finished_loops set outcome = 'failed' where loop % 19 = 5`,
    sql`update finished_loops set ended_at = ended_at + interval '1 s' where loop % 5 = 0`,
    sql`update finished_loops set start_position = start_position + 77000 where loop % 23 = 1`,
    sql`update finished_loops set next_after_ms = 3`,
    sql`delete from finished_loops where loop % 7 = 2`,
    sql`delete from finished_loops where outcome = 'succeeded' and loop > 300`,
    sql`delete from finished_loops where session = 's1'`,
  ];
  for (const change of changes) {
    await change.execute(db);
    await expectRight();
  }
  await sql`delete from finished_loops`.execute(db);
  expect(await reds(database)).toEqual([]);
});

/** Loops of four sources, of sessions of ten, a third of them bad. */
async function insertLoops({ db }: Database, numbers: string): Promise<void> {
  await sql`
    insert into finished_loops (source, workspace, developer, project, upstream, id, session, runner, loop, started_at, ended_at,
      duration_ms, outcome, failed_phase, failed_subject, error_code, error, builds, cached, waits, start_position, end_position)
    select 'acme/dev' || n % 4 || '/shop/skaffold', 'acme', 'dev' || n % 4, 'shop', 'skaffold', 'loop' || n, 's' || n / 10, 1, n,
      timestamptz '2026-01-01Z' + n * interval '20 minutes', timestamptz '2026-01-01Z' + n * interval '20 minutes 1 second', 1000,
      (array['failed', 'succeeded', 'canceled', 'failed', 'succeeded', 'succeeded', 'unknown'])[1 + abs(hashint4(n::int)) % 7],
      'build', 'web', '', 'error ' || n, 1, 0, '[]', n * 1024, n * 1024 + 512
    from generate_series(1, 3000::bigint) n where n between ${sql.raw(numbers)}`.execute(db);
}

async function reds({ db }: Database): Promise<readonly unknown[]> {
  return (await sql`select * from red_times order by source, start_position`.execute(db)).rows;
}

/** What red_times has to be: found for each failed loop by itself. */
async function redsByDefinition({ db }: Database): Promise<readonly unknown[]> {
  const { rows } = await sql`
    select f.id as loop_id, f.source, f.start_position, f.ended_at as failed_at, g.id as green_loop_id, g.ended_at as green_at,
      g.start_position as green_start_position, g.end_position as green_end_position
    from finished_loops f left join lateral (
      select * from finished_loops g
      where g.source = f.source and g.start_position > f.start_position and g.outcome = 'succeeded'
      order by g.start_position limit 1) g on true
    where f.outcome = 'failed' and (
      select p.outcome from finished_loops p
      where p.source = f.source and p.start_position < f.start_position and p.outcome in ('succeeded', 'failed')
      order by p.start_position desc limit 1) is distinct from 'failed'
    order by f.source, f.start_position`.execute(db);
  return rows;
}

it("a time to green that no right clock can have shown is null, and its source is green all the same", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const { db } = database;
  await insertLoops(database, "1 and 40");
  const known = sql<{ ms: number | null }>`select red_ms as ms from time_to_green where green_loop_id is not null`;
  const { rows: right } = await known.execute(db);
  expect(right.length).toBeGreaterThan(3);
  expect(right.every(({ ms }) => ms !== null && ms > 0)).toBe(true);
  for (const wrong of ["1970-01-01T00:00:07Z", "2025-12-31T23:00:00Z", "2028-01-01T00:00:00Z"]) {
    await sql`update finished_loops set ended_at = ${wrong}::timestamptz where outcome = 'succeeded'`.execute(db);
    expect((await known.execute(db)).rows).toEqual(right.map(() => ({ ms: null })));
  }
});
