import { ownValue } from "@tapedeck/shared/own-value";
import type { ColumnHead } from "./rows.ts";

/** The file of a folder that says what it is. */
export const viewsFile = "views.sql";

const heading = (workspace: string) => `-- Tapedeck's tables of the workspace ${workspace}, for DuckDB.`;

/** The workspace of an earlier export; undefined: the file is none of ours. */
export function workspaceIn(views: string): string | undefined {
  return /^-- Tapedeck's tables of the workspace (?<workspace>\S+), for DuckDB\.$/m.exec(views)?.groups?.workspace;
}

export type TableInFolder = {
  readonly name: string;
  readonly columns: readonly ColumnHead[];
  readonly hasDays: boolean;
  /** DuckDB refuses a pattern that matches no file. */
  readonly hasFiles: boolean;
};

const types: Readonly<Record<ColumnHead["type"], string>> = {
  text: "varchar",
  json: "json",
  int32: "integer",
  int64: "bigint",
  double: "double",
  boolean: "boolean",
  timestamp: "timestamptz",
};

/** Statements for DuckDB that make the views of docs/sql.md over the files of a folder, in which they are run. */
export function duckdbViews(workspace: string, tables: readonly TableInFolder[]): string {
  const views = tables.map((table) => `create or replace view tapedeck.${table.name} as\n  ${rowsOf(table)};\n`);
  return `${heading(workspace)}
-- Run it in this folder: duckdb -init ${viewsFile}
set timezone = 'UTC';
create schema if not exists tapedeck;
${positionMacros}${views.join("")}${derived}`;
}

function rowsOf({ name, columns, hasDays, hasFiles }: TableInFolder): string {
  const positions = (ownValue(positionTexts, name) ?? []).filter((position) =>
    columns.some((column) => column.name === position),
  );
  if (!hasFiles) {
    const texts = positions.map((position) => `null::varchar as ${position}_text`);
    const nulls = columns.map((column) => `null::${types[column.type]} as ${quoted(column.name)}`);
    return `select ${[...nulls, ...(hasDays ? ["null::date as day"] : []), ...texts].join(", ")} where false`;
  }
  // Files of an earlier version may have fewer columns.
  const options = `union_by_name = true${hasDays ? ", hive_types = {'day': date}" : ", hive_partitioning = false"}`;
  const texts = positions.map((position) => `, tapedeck.position_text(${position}, workspace) as ${position}_text`);
  return `select *${texts.join("")} from read_parquet('${name}/${hasDays ? "day=*/" : ""}*.parquet', ${options})`;
}

const both = ["start_position", "end_position"];

/** The columns that Postgres' views have as text, too. */
const positionTexts: Readonly<Record<string, readonly string[]>> = {
  loops: both,
  loop_times: both,
  time_to_green: both,
  failures: ["position"],
  build_times: ["start_position"],
  vagrant_command_times: ["start_position"],
  pod_runs: ["start_position"],
};

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The functions of the tables' schema that write positions. */
const positionMacros = `create or replace macro tapedeck.base36(number) as array_to_string(
  [substr('0123456789abcdefghijklmnopqrstuvwxyz', (number // place % 36)::integer + 1, 1)
    for place in [2821109907456, 78364164096, 2176782336, 60466176, 1679616, 46656, 1296, 36, 1]
    if place = 1 or place <= number], '');
create or replace macro tapedeck.position_text(log_offset, log_workspace) as
  length(tapedeck.base36(log_offset // 1024)) || tapedeck.base36(log_offset // 1024)
  || lpad(tapedeck.base36(log_offset % 1024), 2, '0') || '-'
  || (select log_epoch from (select workspace as log_name, epoch as log_epoch from tapedeck.workspaces)
    where log_name = log_workspace);
`;

const isOwnBuild = "kind = 'build' and upstream = 'skaffold' and subject <> '' and not injected";
const hasRun = "outcome in ('succeeded', 'failed') and not cache_hit";

/** What Postgres computes from all rows: the same from those of the files. */
const derived = `create or replace view tapedeck.slowest_artifacts as
  select workspace, project, subject as artifact, day, count(*) as builds, count(distinct developer) as developers,
    percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
    percentile_cont(0.9) within group (order by duration_ms) as p90_ms, sum(duration_ms)::bigint as built_ms
  from tapedeck.operations where ${isOwnBuild} and ${hasRun} group by all;
create or replace view tapedeck.flaky_artifacts as
  select workspace, project, artifact, day, count(*) as builds, count(*) filter (where outcome = 'failed') as failed,
    count(*) filter (where flaked) as flakes, count(*) filter (where flaked) / count(*) as flake_rate,
    count(distinct developer) filter (where flaked) as developers
  from (select *, subject as artifact, outcome = 'failed' and lead(outcome)
      over (partition by session, runner, subject order by loop, start_position) = 'succeeded' as flaked
    from tapedeck.operations where ${isOwnBuild} and ${hasRun}) built
  group by workspace, project, artifact, day having count(*) filter (where flaked) > 0;
create or replace view tapedeck.waiting_by_developer as
  select workspace, developer, project, (started_at at time zone 'UTC')::date as day, count(*) as loops,
    count(*) filter (where outcome = 'failed') as failed, count(*) filter (where overtaken) as overtaken,
    coalesce(sum(duration_ms), 0)::bigint as waited_ms,
    percentile_cont(0.5) within group (order by ready_ms) as ready_p50_ms,
    percentile_cont(0.9) within group (order by ready_ms) as ready_p90_ms
  from tapedeck.loop_times group by all;
`;
