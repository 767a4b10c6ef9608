import { Client } from "pg";

const developers = 200;
const batch = 500_000;
const range = "between '2026-10-21' and '2026-11-20'";

/** What a dashboard asks each view: about the last thirty days of the year, or about now. */
export const dashboards: Readonly<Record<string, string>> = {
  build_times: `select count(*), percentile_cont(array[0.5, 0.9]) within group (order by duration_ms)
    from tapedeck.build_times where started_at ${range} and outcome in ('succeeded', 'failed') and not cache_hit`,
  build_times_daily: `select * from tapedeck.build_times_daily where day ${range}`,
  "build_times_daily of a project": `select * from tapedeck.build_times_daily where day ${range} and project = 'shop-3'`,
  slowest_artifacts: `select project, artifact, sum(builds), max(p90_ms) from tapedeck.slowest_artifacts
    where day ${range} group by 1, 2 order by 4 desc limit 10`,
  flaky_artifacts: `select project, artifact, sum(flakes), sum(builds) from tapedeck.flaky_artifacts
    where day ${range} group by 1, 2 order by 3 desc limit 10`,
  loop_times: `select (started_at at time zone 'UTC')::date, count(*),
      percentile_cont(array[0.5, 0.9]) within group (order by ready_ms), avg(overtaken::int)
    from tapedeck.loop_times where started_at ${range} group by 1`,
  time_to_green: `select failed_phase, error_code, count(*), percentile_cont(0.5) within group (order by red_ms)
    from tapedeck.time_to_green where failed_at ${range} group by 1, 2`,
  "time_to_green, red now":
    "select source, failed_at from tapedeck.time_to_green where green_at is null order by failed_at",
  waiting_by_developer: `select developer, sum(waited_ms) from tapedeck.waiting_by_developer
    where day ${range} group by 1 order by 2 desc limit 10`,
  failures: `select phase, error_code, error, count(*), count(distinct developer)
    from tapedeck.failures where failed_at ${range} group by 1, 2, 3 order by 4 desc limit 10`,
  "loops, newest failed": "select * from tapedeck.loops where outcome = 'failed' order by started_at desc limit 5",
};

/** Writes a year of 200 developers in seven projects, one loop to every ten operations, by the triggers that keep rollups. */
export async function fillDashboards(url: string, operations: number): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    await client.query(sessions);
    for (let from = 1; from <= operations; from += batch) {
      const numbers = [from, Math.min(operations, from + batch - 1)];
      await client.query(builds, [...numbers, operations]);
      await client.query(loops, numbers);
    }
    for (const table of ["operations", "finished_loops", "red_times", "sessions"]) {
      await client.query(`vacuum analyze tapedeck.${table}`);
    }
  } finally {
    await client.end();
  }
}

const source = (developer: string, project: string) => `
  'default/' || ${developer} || '/' || ${project} || '/skaffold' as source, 'default' as workspace, ${developer} as developer,
  ${project} as project, 'skaffold' as upstream`;
const numbered = source(`'dev-' || (n / 10 % ${developers})`, "'shop-' || (n / 10 % 7)");

const sessions = `
  insert into tapedeck.sessions (source, workspace, developer, project, upstream, session, labels, upstream_version,
    started_at, started_ns, ended_ns, end_reason, start_position, last_position, gaps)
  select ${source("'dev-' || n", "'shop-0'")}, 'V-' || n, '{}', 'v2.14.2', '2025-11-01', 0, 0, '', -1000000000 + n, -1, 0
  from generate_series(0, ${developers - 1}) n`;

/** Positions are negative: no event of the log has them. */
const builds = `
  insert into tapedeck.operations (id, source, workspace, developer, project, upstream, session, runner, loop, kind, subject,
    started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform,
    iteration, start_position, end_position)
  select 'view-' || n, ${numbered}, 'V-' || (n / 10 % ${developers}), 1, n / 10,
    case n % 10 when 0 then 'loop' when 8 then 'deploy' else 'build' end,
    case when n % 10 in (0, 8) then '' else 'image-' || n % 10 end,
    at, 0, at + interval '3 s', 0, 500 + n * 7919::bigint % 20000, case when n % 23 = 0 then 'failed' else 'succeeded' end,
    case when n % 23 = 0 then 'BUILD_UNKNOWN' else '' end, case when n % 23 = 0 then 'error ' || n % 31 else '' end,
    n % 10 = 5, false, 'linux/amd64', n / 10, -900000000 + n, -900000000 + n
  from generate_series($1::int, $2::int) n,
    lateral (select timestamptz '2025-11-20Z' + n * (interval '365 days' / $3::int) as at) t`;

const loops = `
  insert into tapedeck.finished_loops (source, workspace, developer, project, upstream, id, session, runner, loop, iteration,
    started_at, ended_at, duration_ms, outcome, failed_phase, failed_subject, error_code, error, sync_ms, build_ms, test_ms,
    render_ms, deploy_ms, check_ms, other_ms, builds, cached, waits, next_after_ms, start_position, end_position)
  select source, workspace, developer, project, upstream, id, session, runner, loop, iteration, started_at, ended_at, duration_ms,
    outcome, case outcome when 'failed' then 'build' else '' end, case outcome when 'failed' then 'image-1' else '' end,
    error_code, error, 0, duration_ms / 2, 0, 0, duration_ms - duration_ms / 2, 0, 0, 7, 1,
    '[{"phase": "build", "subject": "image-1", "from_ms": 0, "to_ms": 500}]', case when loop % 13 = 0 then 200 else 5000 end,
    start_position, end_position
  from tapedeck.operations
  where workspace = 'default' and kind = 'loop' and start_position between -900000000 + $1::int and -900000000 + $2::int`;
