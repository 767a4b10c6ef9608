import { openDatabase, sumBuildDays } from "@tapedeck/query/for-cli/maintain";
import { Client } from "pg";
import { batches, standing } from "./dashboard-rows.ts";

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
  "loop_times by branch": `select labels ->> 'branch', count(*),
      percentile_cont(0.5) within group (order by ready_ms), sum(build_ms)::float8 / sum(duration_ms)
    from tapedeck.loop_times where started_at ${range} group by 1`,
  "build_times of a branch": `select count(*), percentile_cont(array[0.5, 0.9]) within group (order by duration_ms)
    from tapedeck.build_times where started_at ${range} and labels ->> 'branch' = 'fix'
      and outcome in ('succeeded', 'failed') and not cache_hit`,
  time_to_green: `select failed_phase, error_code, count(*), percentile_cont(0.5) within group (order by red_ms)
    from tapedeck.time_to_green where failed_at ${range} group by 1, 2`,
  "time_to_green, red now":
    "select source, failed_at from tapedeck.time_to_green where green_at is null order by failed_at",
  waiting_by_developer: `select developer, sum(waited_ms) from tapedeck.waiting_by_developer
    where day ${range} group by 1 order by 2 desc limit 10`,
  failures: `select phase, error_code, error, count(*), count(distinct developer)
    from tapedeck.failures where failed_at ${range} group by 1, 2, 3 order by 4 desc limit 10`,
  "failures by branch": `select labels ->> 'branch', phase, count(*) from tapedeck.failures
    where failed_at ${range} group by 1, 2 order by 3 desc limit 10`,
  command_times: `select command, outcome, count(*), percentile_cont(0.5) within group (order by duration_ms)
    from tapedeck.command_times where started_at ${range} group by 1, 2`,
  vagrant_command_times: `select machine, box, provider, count(*), count(*) filter (where outcome = 'failed'),
      percentile_cont(array[0.5, 0.9]) within group (order by duration_ms)
    from tapedeck.vagrant_command_times where started_at ${range} group by 1, 2, 3`,
  pod_runs: `select outcome, count(*), sum(apps), sum(failed_apps), percentile_cont(0.5) within group (order by duration_ms)
    from tapedeck.pod_runs where started_at ${range} group by 1`,
  "loops, newest failed": "select * from tapedeck.loops where outcome = 'failed' order by started_at desc limit 5",
};

/** Writes a year of 200 developers, by the triggers that keep rollups. `operations`: those of Skaffold. */
export async function fillDashboards(url: string, operations: number): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    for (const statement of standing) await client.query(statement);
    for (let from = 1; from <= operations; from += batch) {
      const numbers = [from, Math.min(operations, from + batch - 1), operations];
      for (const statement of batches) await client.query(statement, numbers);
    }
    await sumUpDays(url);
    for (const table of tables) await client.query(`vacuum analyze tapedeck.${table}`);
  } finally {
    await client.end();
  }
}

const tables = [
  ...["operations", "finished_loops", "loop_labels", "red_times", "sessions"],
  ...["vagrant_jobs", "vagrant_targets", "rkt_pods", "rkt_apps"],
];

/** Sums up the days of a year's builds but for the last one, as query does once a minute. */
export async function sumUpDays(url: string): Promise<void> {
  await using database = openDatabase({ url, connections: 2 });
  await sumBuildDays(database, { before: "2026-11-20" });
  const client = new Client(url);
  await client.connect();
  await client.query("vacuum analyze tapedeck.build_days");
  await client.end();
}
