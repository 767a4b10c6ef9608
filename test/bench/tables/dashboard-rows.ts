export const developers = 200;

const source = (developer: string, project: string, upstream: string) => `
  'default/' || ${developer} || '/' || ${project} || '/${upstream}' as source, 'default' as workspace, ${developer} as developer,
  ${project} as project, '${upstream}' as upstream`;
const numbered = source(`'dev-' || (n / 10 % ${developers})`, "'shop-' || (n / 10 % 7)", "skaffold");

const session = (upstream: string, prefix: string, first: number) => `
  insert into tapedeck.sessions (source, workspace, developer, project, upstream, session, labels, upstream_version,
    started_at, started_ns, ended_ns, end_reason, start_position, last_position, gaps)
  select ${source("'dev-' || n", "'shop-0'", upstream)}, '${prefix}-' || n,
    jsonb_build_object('branch', 'branch-' || n % 5, 'host', 'host-' || n), '1', '2025-11-01', 0, 0, '', ${first} + n, -1, 0
  from generate_series(0, ${developers - 1}) n`;

/** What there is of anything, whatever the size: sessions, and the machines and boxes of Vagrant. */
export const standing: readonly string[] = [
  session("skaffold", "V", -1_000_000_000),
  session("vagrant", "M", -1_000_001_000),
  session("rkt", "H", -1_000_002_000),
  `insert into tapedeck.vagrant_targets (session, source, id, gone, first_position, last_position, message, name, project_id,
    project_name, state, provider, uuid, machine_id, machine_state, box_name, box_version)
  select 'M-' || n, 'default/dev-' || n || '/shop-0/vagrant', 'T' || t, false, 0, 0, '', 'web' || t, '', '', 'CREATED', 'libvirt', '',
    '', 'running', 'debian/' || t % 3, '12'
  from generate_series(0, ${developers - 1}) n, generate_series(0, 4) t`,
];

const columns = `
  id, source, workspace, developer, project, upstream, session, runner, loop, kind, subject, instance, started_at, started_ns,
  ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform, iteration, start_position,
  end_position`;
const at = "lateral (select timestamptz '2025-11-20Z' + n * (interval '365 days' / $3::int) as at) t";
/** Every fiftieth number, with its moment. */
const fiftieth = `(select n from generate_series($1::int, $2::int) n where n % 50 = 0) numbers, ${at}`;

/**
 * The rows of the numbers $1 to $2 of $3 in all: a year of developers in seven projects. One Skaffold operation in ten is a
 * loop. Every fifty have one command of Vagrant and one pod of rkt with two apps beside them. Positions are negative: no event
 * of the log has them.
 */
export const batches: readonly string[] = [
  `insert into tapedeck.operations (${columns})
  select 'view-' || n, ${numbered}, 'V-' || (n / 10 % ${developers}), 1, n / 10,
    case n % 10 when 0 then 'loop' when 8 then 'deploy' else 'build' end,
    case when n % 10 in (0, 8) then '' else 'image-' || n % 10 end, '',
    at, 0, at + interval '3 s', 0, 500 + n * 7919::bigint % 20000, case when n % 23 = 0 then 'failed' else 'succeeded' end,
    case when n % 23 = 0 then 'BUILD_UNKNOWN' else '' end, case when n % 23 = 0 then 'error ' || n % 31 else '' end,
    n % 10 = 5, false, 'linux/amd64', n / 10, -900000000 + n, -900000000 + n
  from generate_series($1::int, $2::int) n, ${at}`,
  // A tenth of a percent was not observed to the end.
  `insert into tapedeck.finished_loops (source, workspace, developer, project, upstream, id, session, runner, loop, iteration,
    started_at, ended_at, duration_ms, outcome, failed_phase, failed_subject, error_code, error, sync_ms, build_ms, test_ms,
    render_ms, deploy_ms, check_ms, other_ms, builds, cached, waits, next_after_ms, start_position, end_position)
  select source, workspace, developer, project, upstream, id, session, runner, loop, iteration, started_at, ended_at, duration_ms,
    case when loop % 1000 = 7 then 'unknown' else outcome end, case outcome when 'failed' then 'build' else '' end,
    case outcome when 'failed' then 'image-1' else '' end, error_code, error, 0, duration_ms / 2, 0, 0,
    duration_ms - duration_ms / 2, 0, 0, 7, 1, '[{"phase": "build", "subject": "image-1", "from_ms": 0, "to_ms": 500}]',
    case when loop % 13 = 0 then 200 else 5000 end, start_position, end_position
  from tapedeck.operations
  where workspace = 'default' and kind = 'loop' and start_position between -900000000 + $1::int and -900000000 + $2::int
    and $3::int > 0`,
  // Somebody is on another branch in every tenth loop.
  `insert into tapedeck.loop_labels (source, session, runner, loop, labels)
  select source, session, runner, loop, '{"branch": "fix"}' from tapedeck.finished_loops
  where loop % 10 = 3 and start_position between -900000000 + $1::int and -900000000 + $2::int and $3::int > 0`,
  `insert into tapedeck.operations (${columns})
  select 'command-' || n, ${source(`'dev-' || (n / 50 % ${developers})`, "'shop-0'", "vagrant")}, 'M-' || (n / 50 % ${developers}), 0, 0,
    'command', (array['up', 'provision', 'destroy'])[1 + n / 50 % 3], 'J' || n, at, 0, at + interval '1 minute', 0,
    5000 + n * 7919::bigint % 200000, case when n % 450 = 0 then 'failed' else 'succeeded' end, '', '', false, false, '', null,
    -900000000 + n, -900000000 + n
  from ${fiftieth}`,
  `insert into tapedeck.vagrant_jobs (session, source, job, operation, command, args, scope, scope_id, scope_name, runner, state,
    stale, error_code, error, first_position, last_position)
  select 'M-' || (n / 50 % ${developers}), 'vagrant', 'J' || n, 'command', 'up', '[]', 'target', 'T' || n / 50 % 5, 'web' || n / 50 % 5, '',
    'SUCCESS', false, '', '', -900000000 + n, -900000000 + n
  from ${fiftieth}`,
  `insert into tapedeck.operations (${columns})
  select 'pod-' || n, ${source(`'dev-' || (n / 50 % ${developers})`, "'shop-0'", "rkt")}, 'H-' || (n / 50 % ${developers}), 0, 0,
    'pod', 'pod-' || n, '', at, 0, at + interval '1 hour', 0, 3600000, case when n % 450 = 0 then 'failed' else 'unknown' end, '', '',
    false, false, '', null, -900000000 + n, -900000000 + n
  from ${fiftieth}`,
  `insert into tapedeck.rkt_pods (session, source, pod, name, state, cgroup, apps, gone, first_position, last_position)
  select 'H-' || (n / 50 % ${developers}), 'rkt', 'pod-' || n, 'pod-' || n, 'EXITED', '', 2, true, -900000000 + n, -900000000 + n
  from ${fiftieth}`,
  `insert into tapedeck.rkt_apps (session, source, pod, app, image_id, image_name, image_version, state, exit_code, gone,
    first_position, last_position)
  select 'H-' || (n / 50 % ${developers}), 'rkt', 'pod-' || n, 'app-' || a, '', 'image', '1', 'EXITED',
    case when n % 450 = 0 and a = 1 then 1 else 0 end, true, -900000000 + n, -900000000 + n
  from ${fiftieth}, generate_series(1, 2) a`,
];
