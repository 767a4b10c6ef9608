import { endOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase, schemasOf } from "../db/database.ts";
import { migrated } from "../testing/migrated.ts";
import { sumBuildDays } from "./sum-build-days.ts";

/** A day after all builds. */
const before = "2026-12-01";

it("build_times_daily is what the builds say, whatever was summed up before they changed", async () => {
  await using database = await begun();
  const { db } = database;
  await insertBuilds(database, "1 and 2000");
  await expectRight(database);
  expect(await sumBuildDays(database, { before })).toBe(60);
  const changes = [
    // Late, between the others, and of days that had none.
    [sql`select 1`, 0],
    [insertion("2001 and 2003"), 1],
    [insertion("3001 and 3100"), 6],
    [sql`update operations set outcome = 'failed', duration_ms = duration_ms * 2 where id = '79'`, 1],
    // Ends on another day than it began, moves to another day, becomes another kind.
    [sql`update operations set started_at = null, ended_at = started_at + interval '3 days' where id = '300'`, 2],
    [sql`update operations set kind = 'test' where id in ('400', '401')`, 1],
    [sql`update operations set workspace = 'third' where id = '500'`, 2],
    [sql`update operations set outcome = 'canceled' where upstream = 'vagrant' or kind <> 'build'`, 0],
    [sql`delete from operations where session = 's7'`, 2],
    [sql`delete from operations where (started_at at time zone 'UTC')::date = '2026-01-05'`, 2],
  ] as const;
  for (const [change, days] of changes) {
    await change.execute(db);
    await expectRight(database);
    expect({ change: change.compile(db).sql, days: await changedDays(database) }).toMatchObject({ days });
    await sumBuildDays(database, { before });
    expect(await changedDays(database)).toBe(0);
    await expectRight(database);
  }
  await sql`delete from operations`.execute(db);
  await sumBuildDays(database, { before });
  expect(await daily(database)).toEqual([]);
});

it("leaves out today, whose builds still change", async () => {
  await using database = await begun();
  await insertBuilds(database, "1 and 2000");
  await sql`update operations set started_at = now(), ended_at = now() where session = 's3'`.execute(database.db);
  await sumBuildDays(database);
  expect(await changedDays(database)).toBeGreaterThan(0);
  await expectRight(database);
});

it("waits for a batch that is about to be committed", async ({ signal }) => {
  await using database = await begun();
  await insertBuilds(database, "1 and 200");
  const writer = await database.connect();
  try {
    await writer.query(`set search_path to ${schemasOf(database.schema).join(", ")}`);
    await writer.query("begin");
    await writer.query("select from checkpoint for update");
    await writer.query("update operations set duration_ms = 1 where id = '100'");
    let isOver = false;
    const summing = sumBuildDays(database, { before }).finally(() => {
      isOver = true;
    });
    await until(async () => isOver || (await areWaiting(database)), { message: "it neither waits nor ends", signal });
    await writer.query("commit");
    await summing;
  } finally {
    await writer.end();
  }
  await expectRight(database);
});

it("build_months counts the same builds as build_times_daily", async () => {
  await using database = await begun();
  await insertBuilds(database, "1 and 2000");
  await sumBuildDays(database, { before });
  const counts = "sum(builds)::int as builds, sum(failed)::int as failed, sum(cached)::int as cached";
  const { rows: months } = await sql`select ${sql.raw(counts)} from build_months`.execute(database.db);
  const { rows: days } = await sql`select ${sql.raw(counts)} from build_times_daily`.execute(database.db);
  expect(months).toEqual(days);
});

async function begun(): Promise<Database> {
  await using stack = new AsyncDisposableStack();
  const fresh = stack.use(await freshDatabase(migrated));
  const database = stack.use(openDatabase({ url: fresh.url, connections: 2 }));
  await beginCheckpoint(database);
  const opened = stack.move();
  return { ...database, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function beginCheckpoint({ db }: Database): Promise<void> {
  await sql`
    insert into checkpoint (workspace, projection, epoch, position)
    values ('acme', '', 'e', ${endOf(1)}), ('other', '', 'f', ${endOf(1)}), ('third', '', 'g', ${endOf(1)})`.execute(
    db,
  );
}

/** Builds of a month in two workspaces, and other operations; some without a time, an end or a duration. */
const insertion = (numbers: string) => sql`
  insert into operations (source, workspace, developer, project, upstream, id, session, runner, loop, kind, subject,
    started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform,
    start_position, end_position)
  select 'acme/dev' || n % 4 || '/shop/' || upstream, case when n % 8 < 4 then 'acme' else 'other' end, 'dev' || n % 4,
    case when n % 3 = 0 then 'shop' else 'site' end, upstream, n::text, 's' || n / 50, 1, n / 50,
    case when n % 11 = 0 then 'deploy' else 'build' end, 'artifact' || abs(hashint4(n)) % 5,
    case when n % 97 = 0 then null else at end, 0, case when n % 89 = 0 or n % 97 = 0 then null else at end, 0,
    case when n % 83 = 0 then null else abs(hashint4(n)) % 9000 end,
    (array['failed', 'succeeded', 'succeeded', 'canceled', 'succeeded', 'unknown', null])[1 + abs(hashint4(n + 7)) % 7],
    '', 'no', n % 13 = 0, n % 17 = 0, '', n * 1024, n * 1024 + 512
  from generate_series(1, 4000) n,
    lateral (select timestamptz '2026-01-01Z' + n * interval '21 minutes' as at,
      case when n % 19 = 0 then 'vagrant' else 'skaffold' end as upstream) t
  where n between ${sql.raw(numbers)}`;

async function insertBuilds({ db }: Database, numbers: string): Promise<void> {
  await insertion(numbers).execute(db);
}

async function expectRight(database: Database): Promise<void> {
  expect(await daily(database)).toEqual(await byDefinition(database));
}

async function byDefinition(database: Database): Promise<readonly unknown[]> {
  const { rows } = await sql`
    select workspace, developer, project, artifact, (started_at at time zone 'UTC')::date as day,
      count(*) filter (where ran) as builds, count(*) filter (where ran and outcome = 'failed') as failed,
      (count(*) filter (where ran and outcome = 'failed'))::float8 / nullif(count(*) filter (where ran), 0) as failure_rate,
      percentile_cont(0.5) within group (order by duration_ms) filter (where ran) as p50_ms,
      percentile_cont(0.9) within group (order by duration_ms) filter (where ran) as p90_ms,
      percentile_cont(0.99) within group (order by duration_ms) filter (where ran) as p99_ms,
      count(*) filter (where cache_hit) as cached, count(*) filter (where outcome = 'canceled') as canceled,
      count(*) filter (where outcome = 'unknown') as unknown
    from (select *, outcome in ('succeeded', 'failed') and not cache_hit as ran from build_times where not injected)
    group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`.execute(database.db);
  return rows;
}

async function daily({ db }: Database): Promise<readonly unknown[]> {
  return (await sql`select * from build_times_daily order by 1, 2, 3, 4, 5`.execute(db)).rows;
}

async function changedDays({ db }: Database): Promise<number> {
  const { rows } = await sql<{ days: number }>`select count(*)::int as days from changed_build_days`.execute(db);
  return rows[0]?.days ?? Number.NaN;
}

async function areWaiting({ db }: Database): Promise<boolean> {
  const { rows } = await sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return rows.length > 0;
}
