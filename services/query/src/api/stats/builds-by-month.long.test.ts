import { BuildStatsRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { endOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { ProjectedPosition } from "../../projecting/progress.ts";
import { migrated } from "../../testing/migrated.ts";
import { folds } from "../../views/folds.ts";
import type { ApiDeps } from "../deps.ts";
import { buildStats } from "./build-stats.ts";

const cleanup = new AsyncDisposableStack();
let database: Database;
let deps: ApiDeps;

beforeAll(async () => {
  const fresh = cleanup.use(await freshDatabase(migrated));
  database = cleanup.use(openDatabase({ url: fresh.url, connections: 1 }));
  const { db } = database;
  await sql`insert into checkpoint (workspace, projection, epoch, position) values ('acme', '', 'e', ${endOf(1)})`.execute(
    db,
  );
  await insertBuilds("1 and 140000");
  await sql`analyze operations`.execute(db);
  const log = () => expect.fail("the log was asked");
  deps = { workspace: "acme", database: () => database, log, progress: new ProjectedPosition(), folds };
});
afterAll(() => cleanup.disposeAsync());

/** Builds of a year; durations from milliseconds to minutes, some unknown, some at the very edges of months and days. */
async function insertBuilds(numbers: string): Promise<void> {
  await sql`
    insert into operations (source, workspace, developer, project, upstream, id, session, runner, loop, kind, subject,
      started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform,
      start_position, end_position)
    select 'acme/dev' || n % 20 || '/shop/skaffold', 'acme', 'dev' || n % 20, case when n % 3 = 0 then 'shop' else 'site' end,
      'skaffold', n::text, 's' || n / 100, 1, n % 100, case when n % 11 = 0 then 'loop' else 'build' end, 'artifact' || n % 7,
      case when n % 997 = 0 then null when n % 101 = 0 then date_trunc('month', at, 'UTC') else at end, 0, null, 0,
      case when n % 89 = 0 then null else floor(exp(abs(hashint4(n)) / 2147483648.0 * 13)) end,
      (array['failed', 'succeeded', 'succeeded', 'succeeded', 'canceled', 'unknown', null])[1 + n % 7], '', '',
      n % 13 = 0, n % 61 = 0, '', n * 1024, (n + 1) * 1024
    from generate_series(1, 140000) n, lateral (select timestamptz '2026-01-01Z' + n * interval '3 minutes 41 seconds' as at) t
    where n between ${sql.raw(numbers)}`.execute(database.db);
}

const time = (text: string) => ({ seconds: BigInt(Date.parse(text) / 1_000), nanos: 0 });
const stats = async (request: Partial<BuildStatsRequest>) =>
  (await buildStats(deps, { ...BuildStatsRequest.fromPartial({ workspace: "acme" }), ...request })).items;

describe("of many builds", () => {
  it.each<[string, Partial<BuildStatsRequest>]>([
    ["no filter", {}],
    ["artifacts", { group: ["artifact"] }],
    ["a project", { group: ["project", "artifact"], projects: ["shop"] }],
    ["two artifacts", { artifacts: ["artifact1", "artifact2"] }],
    ["whole months", { from: time("2026-03-01T00:00:00Z"), group: ["artifact"] }],
    ["the months until October", { to: time("2026-10-01T00:00:00Z") }],
    ["parts of months", { from: time("2026-02-14T13:14:15Z"), to: time("2026-11-03T01:02:03Z"), group: ["artifact"] }],
    [
      "a second of two months",
      { from: time("2026-03-31T23:59:59Z"), to: time("2026-12-01T00:00:01Z"), group: ["project"] },
    ],
  ])("%s: counts are exact, and percentiles are within 1 %%", async (_, request) => {
    const [all = [], exact = []] = [
      await stats(request),
      // A developer's builds are always counted one by one.
      await stats({ ...request, developers: Array.from({ length: 20 }, (_, index) => `dev${index}`) }),
    ];
    const counts = (items: typeof all) => items.map(({ p50_ms, p90_ms, p99_ms, ...counts }) => counts);
    expect(counts(all)).toEqual(counts(exact));
    const percentiles = (items: typeof all) => items.flatMap(({ p50_ms, p90_ms, p99_ms }) => [p50_ms, p90_ms, p99_ms]);
    expect(percentiles(all)).not.toEqual(percentiles(exact));
    const expected = percentiles(exact);
    const wrong = percentiles(all).map((ms, index) =>
      ms === expected[index] ? 0 : Math.abs((ms ?? 0) / (expected[index] ?? 0) - 1),
    );
    // Between two builds, the exact percentile is interpolated.
    expect(Math.max(...wrong)).toBeLessThan(0.012);
  });

  it("percentiles of few are exact", async () => {
    const request = { from: time("2026-02-14T13:14:15Z"), to: time("2026-02-20T00:00:00Z") };
    expect(await stats(request)).toEqual(
      await stats({ ...request, developers: Array.from({ length: 20 }, (_, index) => `dev${index}`) }),
    );
  });
});

it("the counts follow every insert, update and delete", async () => {
  const { db } = database;
  const counted = async () => (await sql`select * from build_months order by 1, 5, 2, 3, 4`.execute(db)).rows;
  const recounted = async () => {
    const { rows } = await sql`
      select workspace, project, artifact, month, bucket, count(*) filter (where ran) as builds,
        count(*) filter (where ran and outcome = 'failed') as failed, count(*) filter (where cache_hit) as cached,
        count(*) filter (where outcome = 'canceled') as canceled, count(*) filter (where outcome = 'unknown') as unknown
      from (
        select *, coalesce(date_trunc('month', started_at at time zone 'UTC')::date, '-infinity') as month,
          case when ran and duration_ms is not null then duration_bucket(duration_ms) else -1 end as bucket
        from (select *, coalesce(outcome in ('succeeded', 'failed') and not cache_hit, false) as ran from build_times) b) b
      where (outcome is not null or cache_hit) and not injected
      group by 1, 2, 3, 4, 5 order by 1, 5, 2, 3, 4`.execute(db);
    return rows;
  };
  expect(await counted()).toEqual(await recounted());
  await sql`delete from operations where session like 's1%'`.execute(db);
  await sql`update operations set outcome = 'failed', duration_ms = duration_ms * 2 where id like '%7'`.execute(db);
  await sql`update operations set kind = 'test' where id like '%9'`.execute(db);
  expect(await counted()).toEqual(await recounted());
  await sql`delete from operations`.execute(db);
  expect(await counted()).toEqual([]);
});
