import { sql } from "kysely";
import type { Database } from "../../../db/database.ts";

/** Builds of both workspaces: the statistics of the larger one come from counts by month. */
const builds = { small: 3_000, large: 60_000 };

/**
 * Writes rows of six weeks as the projection would: builds, loops, and commands of Vagrant, with every outcome, some without
 * a time or a label. The night in which Berlin's clocks go back is among them.
 */
export async function fillStats({ db }: Database): Promise<void> {
  for (const [workspace, count] of Object.entries(builds)) {
    await sql.raw(sessions(workspace)).execute(db);
    await sql.raw(buildsOf(workspace, count)).execute(db);
  }
  for (const statement of [finishedLoops, loopLabels, apps, commands, jobs, targets]) {
    await sql.raw(statement).execute(db);
  }
  for (const table of ["operations", "finished_loops", "red_times"]) await sql.raw(`analyze ${table}`).execute(db);
}

/** Differs from number to number in no order, and is the same each time. */
const any = (salt: number) => `abs(hashint4(n + ${salt}))`;
const of = (values: readonly string[], salt: number) =>
  `(array[${values.join(", ")}])[1 + ${any(salt)} % ${values.length}]`;

const project = "case when n % 3 = 0 then 'shop' else 'site' end";
const source = (workspace: string, upstream: string) => `
  '${workspace}/dev' || n % 4 || '/' || ${project} || '/${upstream}', '${workspace}', 'dev' || n % 4, ${project}, '${upstream}'`;

const sessions = (workspace: string) => `
  insert into sessions (source, workspace, developer, project, upstream, session, labels, upstream_version, started_at,
    started_ns, ended_ns, end_reason, start_position, last_position, gaps)
  select ${source(workspace, "skaffold")}, '${workspace}' || n % 12, case when n % 5 = 0 then '{}'::jsonb
      else jsonb_build_object('branch', 'b' || n % 2) end, 'v2', '2026-10-05Z', 0, 0, '', n * 1024, n * 1024, 0
  from generate_series(0, 11) n`;

const columns = `
  source, workspace, developer, project, upstream, id, session, runner, loop, kind, subject, instance, started_at, started_ns,
  ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform, start_position, end_position`;

/** Some at the very edges of hours and days, some with a start or an end only, some outside of loops. */
const buildsOf = (workspace: string, count: number) => `
  insert into operations (${columns})
  select ${source(workspace, "skaffold")}, '${workspace}-' || n, '${workspace}' || n % 12, 1, n / 240,
    case when n % 23 = 0 then 'deploy' else 'build' end, 'artifact' || ${any(1)} % 5, '',
    case when n % 97 < 2 then null else at end, 0, case when n % 97 = 0 then null else at + interval '2 s' end, 0,
    case when n % 89 = 0 then null else floor(exp(${any(2)} / 2147483648.0 * 12)) end,
    ${of(["'failed'", "'succeeded'", "'succeeded'", "'succeeded'", "'canceled'", "'unknown'", "null"], 3)},
    case when n % 2 = 0 then 'BUILD_UNKNOWN' else '' end, 'error ' || ${any(4)} % 3, n % 13 = 0, n % 71 = 0, '',
    1048576 * ${workspace === "small" ? 1 : 100}::bigint + n * 1024, 1048576 * ${workspace === "small" ? 1 : 100}::bigint + n * 1024 + 512
  from generate_series(1, ${count}) n, lateral (
    select case when n % 41 = 0 then date_trunc('day', even) else even end as at
    from (select timestamptz '2026-10-05Z' + n * (interval '42 days' / ${count}) as even) t) t`;

/** Positions beyond those of the builds, so that these are never the first to fail. */
const finishedLoops = `
  insert into finished_loops (source, workspace, developer, project, upstream, id, session, runner, loop, iteration, started_at,
    ended_at, duration_ms, outcome, failed_phase, failed_subject, error_code, error, sync_ms, build_ms, test_ms, render_ms,
    deploy_ms, check_ms, other_ms, builds, cached, waits, next_after_ms, start_position, end_position)
  select ${source("small", "skaffold")}, 'loop-' || n, 'small' || n % 12, 1, 1000 + n, n, at,
    case when outcome = 'unknown' then null else at + ms * interval '1 ms' end, case when outcome = 'unknown' then null else ms end,
    outcome, case when outcome = 'failed' then phase else '' end, case when outcome = 'failed' then 'artifact' || n % 5 else '' end,
    case when outcome = 'failed' then 'CODE' || n % 3 else '' end, case when outcome = 'failed' then 'error ' || n % 7 else '' end,
    part * 3, part * 50, 0, part, part * 20, part * 5, ms - part * 79, 1, 0, '[]',
    case when n % 6 = 0 then 499 when n % 6 = 1 then 500 when n % 6 = 2 then null else 90000 end,
    n * 1024 + 67108864, n * 1024 + 67109376
  from generate_series(1, 1200) n, lateral (
    select timestamptz '2026-10-05Z' + n * interval '50 minutes' as at, 100 + ${any(5)} % 90000 as ms, 
      ${of(["'succeeded'", "'succeeded'", "'failed'", "'unknown'", "'canceled'"], 6)} as outcome,
      ${of(["'build'", "'deploy'", "'check'"], 7)} as phase) loop,
    lateral (select case when outcome <> 'unknown' then ms / 100 end as part) part`;

const loopLabels = `
  insert into loop_labels (source, session, runner, loop, labels)
  select source, session, runner, loop, case when loop % 8 = 0 then '{"branch": null}' else '{"branch": "fix"}' end::jsonb
  from finished_loops where loop % 4 = 0`;

const apps = `
  insert into operations (${columns})
  select ${source("small", "rkt")}, 'app-' || n, 'small' || n % 12, 0, 0, 'app', 'pod' || n, '', at, 0, at + interval '9 s', 0, 9000,
    case when n % 2 = 0 then 'failed' else 'unknown' end, '7', 'exited with 7', false, false, '', n * 1024 + 134217728, n * 1024 + 134217760
  from generate_series(1, 200) n, lateral (select timestamptz '2026-10-05Z' + n * interval '5 hours' as at) t`;

const commands = `
  insert into operations (${columns})
  select ${source("small", "vagrant")}, 'command-' || n, 'small' || n % 12, 0, 0, 'command', ${of(["'up'", "'provision'", "'destroy'"], 8)},
    'J' || n, case when n % 19 = 0 then null else at end, 0, at + interval '1 minute', 0, ${any(9)} % 600000,
    ${of(["'succeeded'", "'succeeded'", "'failed'", "'unknown'"], 10)}, '1', 'no', false, false, '',
    n * 1024 + 268435456, n * 1024 + 268435968
  from generate_series(1, 800) n, lateral (select timestamptz '2026-10-05Z' + n * interval '71 minutes' as at) t`;

/** A third of the commands is about no single machine. */
const jobs = `
  insert into vagrant_jobs (session, source, job, operation, command, args, scope, scope_id, scope_name, runner, state, stale,
    error_code, error, first_position, last_position)
  select 'small' || n % 12, 'small', 'J' || n, 'command', 'up', '[]', case when n % 3 = 0 then 'project' else 'target' end,
    'T' || n % 4, 'web' || n % 4, '', 'SUCCESS', false, '', '', n, n
  from generate_series(1, 800) n`;

/** One target is not known. */
const targets = `
  insert into vagrant_targets (session, source, id, gone, first_position, last_position, message, name, project_id, project_name,
    state, provider, uuid, machine_id, machine_state, box_name, box_version)
  select 'small' || s, 'small', 'T' || n, false, n, n, '', 'web' || n, '', '', '', case when n = 0 then 'docker' else 'libvirt' end,
    '', '', '', 'debian/' || n, '12'
  from generate_series(0, 2) n, generate_series(0, 11) s`;
