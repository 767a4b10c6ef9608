import type { Bin } from "./bins.ts";
import type { Choice, TrendsGroup } from "./choice.ts";
import { phases } from "./figures.ts";

/** The rows that a chart counts, for SQL: the same rows as the API's, in the same groups. */
export type TrendsRequest = Pick<Choice, "group" | "zone" | "developers" | "projects" | "labels" | "by"> & {
  readonly workspace: string;
  readonly bins: readonly Bin[];
};

export type ChartQuery =
  | "sides"
  | "waits"
  | "wait"
  | "overtaken"
  | "green"
  | "failures"
  | "slow"
  | "flaky"
  | "commands";

/** The query that gives a chart's numbers, to run with any of Tapedeck's logins for SQL. */
export function sqlOf(query: ChartQuery, request: TrendsRequest): string {
  return queries[query](request);
}

const queries: Readonly<Record<ChartQuery, (request: TrendsRequest) => string>> = {
  sides: (
    request,
  ) => `select ${request.by ?? "developer"}, count(*) as loops, count(*) filter (where outcome = 'failed') as failed,
  percentile_cont(0.5) within group (order by ready_ms) as p50_ms,
  percentile_cont(0.9) within group (order by ready_ms) as p90_ms,
  avg(overtaken::int)::float8 as overtaken,
  ${phases.map((phase) => `sum(${phase}_ms)::float8 / nullif(sum(duration_ms), 0) as ${phase}`).join(",\n  ")}
from tapedeck.loop_times
where ${where("started_at", request)}
group by 1 order by 4 desc nulls last, 1;`,
  waits: (request) => `select phase, sum(ms)::bigint as ms, sum(ms)::float8 / nullif(sum(sum(ms)) over (), 0) as share
from tapedeck.loop_times cross join lateral (values
  ${phases.map((phase) => `('${phase}', ${phase}_ms)`).join(", ")}) as waits (phase, ms)
where ${where("started_at", request)}
group by 1 having sum(ms) > 0 order by 2 desc, 1;`,
  wait: (request) => `select ${binned("started_at", request)}, count(*) as loops,
  percentile_cont(0.5) within group (order by ready_ms) as p50_ms,
  percentile_cont(0.9) within group (order by ready_ms) as p90_ms,
  percentile_cont(0.99) within group (order by ready_ms) as p99_ms
from tapedeck.loop_times
where ${where("started_at", request)}
group by 1 order by 1;`,
  green: (request) => `select ${binned("failed_at", request)}, count(*) as red,
  count(*) filter (where green_at is null) as still_red,
  percentile_cont(0.5) within group (order by red_ms) as p50_ms,
  percentile_cont(0.9) within group (order by red_ms) as p90_ms
from tapedeck.time_to_green
where ${where("failed_at", request)}
group by 1 order by 1;`,
  overtaken: (request) => `select ${binned("started_at", request)}, count(*) as loops,
  count(*) filter (where overtaken) as overtaken, avg(overtaken::int)::float8 as share
from tapedeck.loop_times
where ${where("started_at", request)}
group by 1 order by 1;`,
  failures: (request) => `select ${binned("failed_at", request)}, reason, cause_group, count(*) as failures
from tapedeck.failures
where ${where("failed_at", request)}
group by 1, 2, 3 order by 1, 4 desc, 2, 3;`,
  slow: (request) => `select project, artifact, count(*) as builds,
  percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
  percentile_cont(0.9) within group (order by duration_ms) as p90_ms
from tapedeck.build_times
where outcome in ('succeeded', 'failed') and not cache_hit and not injected
  and ${where("started_at", request)}
group by 1, 2 order by 5 desc, 1, 2;`,
  flaky: (request) => `select b.project, b.artifact, count(*) as builds, count(*) filter (where next.is_good) as flakes,
  count(distinct b.developer) filter (where next.is_good) as developers
from tapedeck.build_times b left join lateral (
  select n.outcome = 'succeeded' as is_good from tapedeck.build_times n
  where b.outcome = 'failed' and n.session = b.session and n.runner = b.runner and n.artifact = b.artifact
    and (n.loop, n.start_position) > (b.loop, b.start_position)
    and n.outcome in ('succeeded', 'failed') and not n.cache_hit and not n.injected
  order by n.loop, n.start_position limit 1) next on true
where b.outcome in ('succeeded', 'failed') and not b.cache_hit and not b.injected
  and ${where("started_at", request, "b.")}
group by 1, 2 having bool_or(next.is_good) order by 4 desc, 1, 2;`,
  commands: (
    request,
  ) => `select command, machine, count(*) as runs, count(*) filter (where outcome = 'failed') as failed,
  percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
  percentile_cont(0.9) within group (order by duration_ms) as p90_ms
from tapedeck.vagrant_command_times
where ${where("started_at", request)}
group by 1, 2 order by 6 desc, 1, 2;`,
};

const expressions: Readonly<Record<TrendsGroup, (column: string, zone: string) => string>> = {
  hour: (column, zone) => `date_trunc('hour', ${column}, ${zone}) as hour`,
  day: (column, zone) => `(${column} at time zone ${zone})::date as day`,
  week: (column, zone) => `date_trunc('week', ${column} at time zone ${zone})::date as week`,
};

function binned(column: string, { group, zone }: TrendsRequest): string {
  return expressions[group](column, literal(zone));
}

function where(column: string, request: TrendsRequest, of = ""): string {
  const { workspace, bins, developers, projects, labels } = request;
  const [first, last] = [bins.at(0), bins.at(-1)];
  const among = (name: string, values: readonly string[]) =>
    values.length === 0 ? [] : [`${of}${name} in (${values.map(literal).join(", ")})`];
  return [
    `${of}workspace = ${literal(workspace)}`,
    `${of}${column} >= ${literal(new Date(first?.from ?? 0).toISOString())}`,
    `${of}${column} < ${literal(new Date(last?.to ?? 0).toISOString())}`,
    ...among("developer", developers),
    ...among("project", projects),
    ...labels.map((label) => {
      const at = label.indexOf("=");
      return `${of}labels ->> ${literal(label.slice(0, at))} = ${literal(label.slice(at + 1))}`;
    }),
  ].join("\n  and ");
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
