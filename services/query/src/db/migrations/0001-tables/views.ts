import { causesOf } from "./causes.ts";
import { day, hasFailedCode, isBuild, isFailedBuild, isFailedLoop, isOwnBuild, isStillExpired } from "./conditions.ts";

/** The session's labels `s` with what had changed by the loop's start, `c`: null for a label that was no longer there. */
const labels =
  "case when c.labels is null then s.labels else jsonb_strip_nulls(coalesce(s.labels, '{}') || c.labels) end";

const phases = ["sync", "build", "test", "render", "deploy", "check", "other"] as const;
const shares = phases.map((phase) => `l.${phase}_ms::float8 / nullif(l.duration_ms, 0) as ${phase}_share`).join(", ");

/**
 * A failed step `o` of Skaffold that is a cause by itself. In a loop it is the first to fail. Outside of loops nothing
 * shows where a round ends. There, when a build fails, Skaffold ends those that run, and begins and fails those that wait within
 * milliseconds, so a step that ran when another one failed, or began less than half a second later, failed in the same
 * round. Skaffold begins the next round once nothing has changed for a second.
 */
const isCause = `(o.loop = 0 or exists (
        select from finished_loops l
        where l.session = o.session and l.runner = o.runner and l.loop = o.loop and l.outcome = 'unknown'))
      and not exists (
        select from operations e
        where e.session = o.session and e.runner = o.runner and e.loop = o.loop
          and e.outcome = 'failed' and not e.injected and e.kind not in ('loop', 'job', 'pod') and e.reason <> 'cancelled'
          and (e.ended_at, e.ended_ns, e.end_position) < (o.ended_at, o.ended_ns, o.end_position)
          and (o.loop <> 0 or (
            e.ended_at > coalesce(o.started_at, o.ended_at) - interval '500 ms'
            and (e.kind, e.subject) <> (o.kind, o.subject))))`;

/** The definition of a row of build_times_daily, without the columns by which `from` has found the builds. */
const dailyOf = (from: string) => `
  select developer, project, artifact,
    count(*) filter (where ran) as builds,
    count(*) filter (where ran and outcome = 'failed') as failed,
    (count(*) filter (where ran and outcome = 'failed'))::float8 / nullif(count(*) filter (where ran), 0) as failure_rate,
    percentile_cont(0.5) within group (order by duration_ms) filter (where ran) as p50_ms,
    percentile_cont(0.9) within group (order by duration_ms) filter (where ran) as p90_ms,
    percentile_cont(0.99) within group (order by duration_ms) filter (where ran) as p99_ms,
    count(*) filter (where cache_hit) as cached,
    count(*) filter (where outcome = 'canceled') as canceled,
    count(*) filter (where outcome = 'unknown') as unknown
  from (
    select developer, project, subject as artifact, duration_ms, outcome, cache_hit,
      outcome in ('succeeded', 'failed') and not cache_hit as ran
    from operations where ${isOwnBuild} and ${from}) build
  group by developer, artifact, project`;

const figures = "builds, failed, failure_rate, p50_ms, p90_ms, p99_ms, cached, canceled, unknown";

/** Percentiles of what expired are up to 1 % off. */
const expiredFigures = `sum(builds)::bigint, sum(failed)::bigint, sum(failed)::float8 / nullif(sum(builds), 0),
      ${[0.5, 0.9, 0.99].map((part) => `bucket_percentile(array_agg(bucket), array_agg(builds::bigint), ${part})`).join(", ")},
      sum(cached)::bigint, sum(canceled)::bigint, sum(unknown)::bigint`;

/**
 * Whether row security restricts who asks to one workspace: it applies to that role, which has the rights of the readers and
 * not those of the analyst. A role that has only been granted them, as the owner has who created them, may lack their rights.
 * It then has no index but those by workspace, and looking rows up one by one reads all of its workspace for each. Both ways
 * give the same rows: this chooses the quicker one.
 */
const isRestricted = `(
    select row_security_active('operations'::regclass)
      and coalesce(bool_or(rolname = 'tapedeck_reader'), false) and not coalesce(bool_or(rolname = 'tapedeck_analyst'), false)
    from pg_catalog.pg_roles
    where rolname in ('tapedeck_reader', 'tapedeck_analyst') and pg_catalog.pg_has_role(current_user, oid, 'usage'))`;

/** Null, as a duration in `operations` is, where no right clock can have shown both times (see millisecondsBetween). */
const redMs = `case when least(r.failed_at, r.green_at) >= '2000-01-01Z' and r.green_at - r.failed_at between '-1 minute' and '366 days'
        then greatest(floor(extract(epoch from r.green_at - r.failed_at) * 1000), 0)::bigint end`;

const flakes = "outcome = 'failed' and next_outcome = 'succeeded'";

// The workspace's epoch is joined, not looked up for each row: Postgres leaves the join out where no position's text is asked for.
export const views: readonly string[] = [
  `create view loops with (security_invoker = true) as
    select o.source, o.workspace, o.developer, o.project, o.upstream, o.session, o.runner, o.loop, o.iteration, o.id,
      o.started_at, o.started_ns, o.ended_at, o.ended_ns, o.duration_ms, o.outcome, o.error_code, o.error, ${causesOf("o")}, o.injected,
      o.start_position, o.end_position,
      position_at(o.start_position, w.epoch) as start_position_text, position_at(o.end_position, w.epoch) as end_position_text,
      ${labels} as labels
    from operations o left join sessions s using (session) left join loop_labels c using (session, runner, loop)
      left join workspaces w on w.workspace = o.workspace
    where o.kind = 'loop'`,
  // Skaffold looks for changes once a second by default (--watch-poll-interval), and begins a loop only when nothing has
  // changed for that long. A loop that begins sooner after the last one was due before that ended.
  `create view loop_times with (security_invoker = true) as
    select l.source, l.workspace, l.developer, l.project, ${labels} as labels, l.session, l.runner, l.loop, l.iteration, l.id,
      l.started_at, l.ended_at, l.outcome, l.duration_ms,
      case when l.outcome = 'succeeded' then l.duration_ms end as ready_ms,
      coalesce(l.next_after_ms < 500, false) as overtaken,
      l.failed_phase, l.failed_subject, l.error_code, l.error, ${causesOf("l")},
      l.sync_ms, l.build_ms, l.test_ms, l.render_ms, l.deploy_ms, l.check_ms, l.other_ms,
      l.builds, l.cached, l.waits, l.next_after_ms, l.start_position, l.end_position,
      position_at(l.start_position, w.epoch) as start_position_text, position_at(l.end_position, w.epoch) as end_position_text,
      ${shares}
    from finished_loops l left join sessions s using (session) left join loop_labels c using (session, runner, loop)
      left join workspaces w on w.workspace = l.workspace`,
  // Red times are rounded down, as all other durations are.
  `create view time_to_green with (security_invoker = true) as
    select f.source, f.workspace, f.developer, f.project, f.labels, f.session, f.id as loop_id,
      r.failed_at, r.green_at,
      ${redMs} as red_ms,
      f.failed_phase, f.failed_subject, f.error_code, f.error, ${causesOf("f")},
      tried.loops as loops_between, tried.errors as errors_between,
      r.green_loop_id, f.start_position, r.green_end_position as end_position,
      f.start_position_text, position_at(r.green_end_position, w.epoch) as end_position_text
    from red_times r join loop_times f on f.id = r.loop_id left join workspaces w on w.workspace = f.workspace
    left join lateral (
      select count(*) as loops, coalesce(array_agg(b.error order by b.start_position), '{}') as errors
      from finished_loops b
      where b.source = r.source and b.start_position > r.start_position and b.outcome = 'failed'
        and b.start_position < coalesce(r.green_start_position, ${Number.MAX_SAFE_INTEGER})) tried on true`,
  // This view shows who waited how long, by day. A percentile of several days comes from loop_times, never from these. A day
  // of which no loop's end is known has 0, as in the statistics.
  `create view waiting_by_developer with (security_invoker = true) as
    select workspace, developer, project, (started_at at time zone 'UTC')::date as day,
      count(*) as loops,
      count(*) filter (where outcome = 'failed') as failed,
      count(*) filter (where overtaken) as overtaken,
      coalesce(sum(duration_ms), 0)::bigint as waited_ms,
      percentile_cont(0.5) within group (order by ready_ms) as ready_p50_ms,
      percentile_cont(0.9) within group (order by ready_ms) as ready_p90_ms
    from loop_times group by workspace, developer, project, day`,
  `create view build_times with (security_invoker = true) as
    select o.workspace, o.developer, o.project, o.source, ${labels} as labels, o.subject as artifact, o.session, o.runner, o.loop,
      coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome, o.cache_hit, o.error_code, o.error,
      o.platform, s.upstream_version as skaffold_version, o.injected, o.start_position,
      position_at(o.start_position, w.epoch) as start_position_text
    from operations o left join sessions s using (session) left join loop_labels c using (session, runner, loop)
      left join workspaces w on w.workspace = o.workspace
    where o.kind = 'build' and o.upstream = 'skaffold' and o.subject <> ''`,
  // Laterally: Postgres then looks each changed day up in the index of days, however many days it expects to be changed. All
  // parts have the same types, without which Postgres does not look for the asked days in each of them.
  `create view build_times_daily with (security_invoker = true) as
    select workspace, developer, project, artifact, day, builds::bigint, failed::bigint,
      failed::float8 / nullif(builds, 0) as failure_rate, p50_ms, p90_ms, p99_ms, cached::bigint, canceled::bigint, unknown::bigint
    from build_days
    union all
    select c.workspace, developer, project, artifact, c.day, ${figures}
    from changed_build_days c cross join lateral (${dailyOf(`workspace = c.workspace and ${day} = c.day`)}) live
    union all
    select w.workspace, developer, project, artifact, null::date, ${figures}
    from (select distinct workspace from operations where ${isOwnBuild} and ${day} is null) w
      cross join lateral (${dailyOf(`workspace = w.workspace and ${day} is null`)}) undated
    union all
    select workspace, '', project, artifact, nullif(day, '-infinity'), ${expiredFigures}
    from expired_builds e where ${isStillExpired} group by workspace, project, artifact, day`,
  // Grouped first by what differs most: to sort by the workspace, which is the same in most rows, compares all columns.
  `create view slowest_artifacts with (security_invoker = true) as
    select workspace, project, subject as artifact, ${day} as day,
      count(*) as builds, count(distinct developer) as developers,
      percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
      percentile_cont(0.9) within group (order by duration_ms) as p90_ms,
      sum(duration_ms)::bigint as built_ms
    from operations where ${isOwnBuild} and outcome in ('succeeded', 'failed') and not cache_hit
    group by subject, project, ${day}, workspace`,
  // All builds are counted from an index alone, and only of those that failed the next one is looked for. For a login of one
  // workspace, all of its builds are put in order. A runner is one configuration. The next build may have no loop of its own:
  // Skaffold before v1 reports none.
  `create view flaky_artifacts with (security_invoker = true) as
    select workspace, project, artifact, day, sum(builds)::bigint as builds, sum(failed)::bigint as failed,
      sum(flakes)::bigint as flakes, (sum(flakes) / sum(builds))::float8 as flake_rate, sum(developers)::bigint as developers
    from (
      select workspace, project, subject as artifact, ${day} as day,
        count(*) as builds, count(*) filter (where outcome = 'failed') as failed, 0 as flakes, 0 as developers
      from operations
      where ${isBuild} and outcome in ('succeeded', 'failed') and not cache_hit and not injected
        and not ${isRestricted}
      group by 1, 2, 3, 4
      union all
      select workspace, project, subject, day, 0, 0, count(*), count(distinct developer)
      from (select *, ${day} as day from operations where ${isFailedBuild}) b cross join lateral (
        select n.outcome as next_outcome from operations n
        where n.session = b.session and n.runner = b.runner and n.subject = b.subject
          and (n.loop, n.start_position) > (b.loop, b.start_position)
          and n.kind = 'build' and not n.cache_hit and not n.injected and n.outcome in ('succeeded', 'failed')
        order by n.loop, n.start_position limit 1) next
      where next_outcome = 'succeeded' and not ${isRestricted}
      group by 1, 2, 3, 4
      union all
      select workspace, project, subject, day, count(*), count(*) filter (where outcome = 'failed'),
        count(*) filter (where ${flakes}), count(distinct developer) filter (where ${flakes})
      from (
        select workspace, project, subject, developer, outcome, ${day} as day,
          lead(outcome) over (partition by session, runner, subject order by loop, start_position) as next_outcome
        from operations
        where ${isBuild} and outcome in ('succeeded', 'failed') and not cache_hit and not injected) built
      where ${isRestricted}
      group by 1, 2, 3, 4) part
    group by workspace, project, artifact, day having sum(flakes) > 0`,
  `create view command_times with (security_invoker = true) as
    select o.workspace, o.developer, o.project, o.source, s.labels, o.subject as command, o.instance as job, o.session,
      j.args, j.scope, j.scope_name, coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome,
      o.exit_code, o.error_code, o.error, s.upstream_version as vagrant_version, o.start_position,
      position_at(o.start_position, w.epoch) as start_position_text
    from operations o join sessions s using (session)
      left join vagrant_jobs j on j.session = o.session and j.job = o.instance left join workspaces w on w.workspace = o.workspace
    where o.kind = 'command' and o.upstream = 'vagrant'`,
  `create view vagrant_command_times with (security_invoker = true) as
    select c.source, c.workspace, c.developer, c.project, c.labels, c.session, c.job, c.command, c.args,
      case when c.scope = 'target' then c.scope_name end as machine,
      t.provider, t.box_name as box, t.box_version,
      c.started_at, c.duration_ms, c.outcome, c.exit_code, c.error_code, c.error, c.vagrant_version,
      c.start_position, c.start_position_text
    from command_times c
    left join vagrant_jobs j on j.session = c.session and j.job = c.job
    left join vagrant_targets t on t.session = c.session and j.scope = 'target' and t.id = j.scope_id`,
  `create view pod_runs with (security_invoker = true) as
    select o.source, o.workspace, o.developer, o.project, o.session, o.subject as pod, p.name,
      o.started_at, o.ended_at, o.duration_ms, o.outcome, o.error, p.state, p.gone,
      (select count(*) from rkt_apps a where a.session = o.session and a.pod = o.subject) as apps,
      (select count(*) from rkt_apps a where a.session = o.session and a.pod = o.subject and a.exit_code > 0)
        as failed_apps,
      o.start_position, position_at(o.start_position, w.epoch) as start_position_text
    from operations o left join rkt_pods p on p.session = o.session and p.pod = o.subject
      left join workspaces w on w.workspace = o.workspace
    where o.kind = 'pod' and o.upstream = 'rkt'`,
  // One row for each cause: failed loops, failed steps that are causes by themselves, and jobs of Vagrant that failed without
  // a command (setting up, or before their command began). A failed command's job, whose subject is the command's instance,
  // is no second cause. Last, sessions without loops and commands whose exit code alone shows that they failed.
  `create view failures with (security_invoker = true) as
  select source, workspace, developer, project, 'skaffold' as upstream, labels, session, ended_at as failed_at,
      failed_phase as phase, failed_subject as subject, error_code, error, ${causesOf("t")}, id as operation_id,
      end_position as position, end_position_text as position_text
    from loop_times t where ${isFailedLoop}
    union all
    select o.source, o.workspace, o.developer, o.project, o.upstream, ${labels}, o.session, o.ended_at,
      o.kind, o.subject, o.error_code, o.error, ${causesOf("o")}, o.id, o.end_position, position_at(o.end_position, w.epoch)
    from operations o left join sessions s using (session) left join loop_labels c using (session, runner, loop)
      left join workspaces w on w.workspace = o.workspace
    where o.outcome = 'failed' and not o.injected and o.kind not in ('loop', 'job', 'pod') and o.reason <> 'cancelled'
      and (o.upstream <> 'skaffold' or (${isCause}))
    union all
    select o.source, o.workspace, o.developer, o.project, o.upstream, s.labels, o.session, o.ended_at,
      o.kind, coalesce(nullif(j.command, ''), nullif(j.operation, ''), ''), o.error_code, o.error, ${causesOf("o")}, o.id,
      o.end_position, position_at(o.end_position, w.epoch)
    from operations o left join sessions s using (session)
      left join vagrant_jobs j on j.session = o.session and j.job = o.subject left join workspaces w on w.workspace = o.workspace
    where o.kind = 'job' and o.outcome = 'failed' and not o.injected and not exists (
      select from operations c
      where c.instance = o.subject and c.instance <> '' and c.session = o.session and c.kind = 'command'
        and c.outcome = 'failed')
    union all
    select s.source, s.workspace, s.developer, s.project, s.upstream, s.labels, s.session, s.ended_at,
      'session', '', '', s.end_reason, ${causesOf("s")}, null, s.end_position, position_at(s.end_position, w.epoch)
    from sessions s left join workspaces w on w.workspace = s.workspace
    where ${hasFailedCode} and not exists (
      select from operations o
      where o.session = s.session and not o.injected and (o.kind in ('loop', 'command') or o.outcome = 'failed'))`,
];
