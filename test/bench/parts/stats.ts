import { Client } from "pg";
import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { RequestTimes } from "../frame/requests.ts";
import { seed } from "../frame/seed.ts";
import { startStack } from "../frame/stack.ts";
import { sumUpDays } from "../tables/dashboards.ts";

const bound = 100;

/** Queries statistics of as many builds as the given size, of 50 developers over a year. */
export async function stats(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  await seed(bench, stack.log, bench.part, 400);
  await tablesCaughtUp(stack);
  await insertBuilds(stack.database, bench.options.size);
  await sumUpDays(stack.database);
  const times = cleanup.use(await RequestTimes.start(bench, stack));
  await checkCounts(times, stack.database);
  const count = bench.scaled(30, 3);
  const measure = (name: string, ask: (count: number) => Promise<Float64Array>) =>
    times.measure({ name, ask, count, atMost: bound });
  for (const path of paths) await measure(path, times.http([`/api/v1${path}`]));
  for (const [name, statement] of Object.entries(statements)) await measure(`SQL, ${name}`, times.sql(statement));
  times.report("statistics");
}

const paths = [
  "/operations?limit=50",
  "/operations?limit=50&outcome=failed&kind=build",
  "/operations?limit=50&outcome=canceled",
  "/operations?limit=50&developer=dev-7&from=2026-03-01T00:00:00Z&to=2026-03-08T00:00:00Z",
  "/stats/builds",
  "/stats/builds?group=artifact",
  "/stats/builds?group=developer&group=day&from=2026-03-01T00:00:00Z&to=2026-03-08T00:00:00Z",
] as const;

const week = "between '2026-03-01' and '2026-03-08'";
const statements: Readonly<Record<string, string>> = {
  "build_times of a week": `select count(*), avg(duration_ms) from tapedeck.build_times where started_at ${week}`,
  "build_times_daily, all": "select sum(builds), max(p90_ms) from tapedeck.build_times_daily",
  "build_times_daily of a week": `select * from tapedeck.build_times_daily where day ${week}`,
  "newest failed loops": "select * from tapedeck.loops where outcome = 'failed' order by started_at desc limit 5",
  "command_times by command": "select command, outcome, count(*) from tapedeck.command_times group by 1, 2",
};

/**
 * Writes rows as the projection does, with one loop to every ten builds. Uses SQL, because a log with these events
 * would take an hour to fill and does not affect the answers.
 */
async function insertBuilds(url: string, builds: number): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    for (const statement of fill) await client.query(statement, statement.includes("$1") ? [builds] : []);
  } finally {
    await client.end();
  }
}

type Counts = { readonly count: number; readonly cached: number; readonly canceled: number; readonly unknown: number };

/** Checks that the API counts exactly the inserted builds. */
async function checkCounts(times: RequestTimes, url: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  const { rows } = await client.query<{ builds: string }>("select count(*) as builds from tapedeck.build_times");
  await client.end();
  const { items } = await times.body<{ items: readonly Counts[] }>("/api/v1/stats/builds");
  const counted = items.reduce(
    (sum, { count, cached, canceled, unknown }) =>
      sum + Number(count) + Number(cached) + Number(canceled) + Number(unknown),
    0,
  );
  if (counted !== Number(rows[0]?.builds)) throw new Error(`${counted} of ${rows[0]?.builds} builds are counted`);
}

const developers = 50;
const source = (developer: string) => `
  'default/' || ${developer} || '/shop/skaffold' as source, 'default' as workspace, ${developer} as developer,
  'shop' as project, 'skaffold' as upstream`;

/** Positions are negative: no event of the log has them, and the newest of the log stay the newest. */
const fill = [
  `insert into tapedeck.sessions (source, workspace, developer, project, upstream, session, labels, upstream_version,
     started_at, started_ns, ended_ns, end_reason, start_position, last_position, gaps)
   select ${source("'dev-' || n")}, 'S-' || n, '{}', 'v2.14.2', '2025-11-01', 0, 0, '', -2000000000 + n, -1, 0
   from generate_series(0, ${developers - 1}) n`,
  `insert into tapedeck.operations (id, source, workspace, developer, project, upstream, session, runner, loop, kind,
     subject, started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected,
     platform, iteration, start_position, end_position)
   select 'bench-' || n, ${source(`'dev-' || (n % ${developers})`)}, 'S-' || (n % ${developers}), 1, n / 10,
     case when n % 11 = 0 then 'loop' else 'build' end, case when n % 11 = 0 then '' else 'image-' || (n % 17) end,
     at, 0, at + interval '3 s', 0, 500 + (n * 7919::bigint % 20000),
     case when n % 23 = 0 then 'failed' else 'succeeded' end, '', '', n % 5 = 0, false, 'linux/amd64',
     n / 10, -1900000000 + n, -1900000000 + n
   from generate_series(1, $1::int) n,
     lateral (select timestamptz '2025-11-20' + n * (interval '365 days' / $1::int) as at) t`,
  "analyze tapedeck.operations",
  "analyze tapedeck.sessions",
];
