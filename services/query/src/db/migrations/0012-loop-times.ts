import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Skaffold's dev loops that are over: what was waited for, what failed first, and how long it took until all was good again. */
export const loopTimes: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  `create table finished_loops (
    source text not null,
    workspace text not null,
    developer text not null,
    project text not null,
    upstream text not null,
    -- Id of the loop's operation.
    id text primary key,
    session text not null,
    runner int not null,
    loop int not null,
    iteration int,
    started_at timestamptz not null,
    ended_at timestamptz,
    -- Null where the end is not known.
    duration_ms bigint,
    outcome text not null,
    -- The operation that failed first. Empty: nothing failed, or Skaffold reported none.
    failed_phase text not null,
    failed_subject text not null,
    error_code text not null,
    error text not null,
    -- How long the loop waited for each phase. They add up to duration_ms, and are null with it.
    sync_ms bigint,
    build_ms bigint,
    test_ms bigint,
    render_ms bigint,
    deploy_ms bigint,
    check_ms bigint,
    other_ms bigint,
    -- Builds that ran, and builds that the cache answered.
    builds int not null,
    cached int not null,
    -- What it waited for at each moment: [{phase, subject, from_ms, to_ms}].
    waits jsonb not null,
    -- From this loop's end to the next one's start in the same runner.
    next_after_ms bigint,
    start_position bigint not null,
    end_position bigint not null
  )`,
  `create index on finished_loops (session, runner, loop)`,
  // The loops of a source in their order, with the columns that distinguish good from bad.
  `create index finished_loops_by_source on finished_loops (source, start_position) include (outcome, ended_at)`,
  // Holds all that a page of trends counts, so that a range of time is read from the index alone.
  `create index finished_loops_by_time on finished_loops (started_at)
    include (workspace, developer, project, source, outcome, duration_ms, next_after_ms,
      sync_ms, build_ms, test_ms, render_ms, deploy_ms, check_ms, other_ms)`,
  `create index finished_loops_failed on finished_loops (started_at) where outcome = 'failed'`,
  `create view loop_times as
    select l.source, l.workspace, l.developer, l.project, s.labels, l.session, l.runner, l.loop, l.iteration, l.id,
      l.started_at, l.ended_at, l.outcome, l.duration_ms,
      case when l.outcome = 'succeeded' then l.duration_ms end as ready_ms,
      coalesce(l.next_after_ms < ${overtakenWithinMs()}, false) as overtaken,
      l.failed_phase, l.failed_subject, l.error_code, l.error,
      l.sync_ms, l.build_ms, l.test_ms, l.render_ms, l.deploy_ms, l.check_ms, l.other_ms,
      l.builds, l.cached, l.waits, l.next_after_ms, l.start_position, l.end_position,
      position_text(l.start_position) as start_position_text, position_text(l.end_position) as end_position_text
    from finished_loops l left join sessions s using (session)`,
  `create view time_to_green as
    select f.source, f.workspace, f.developer, f.project, f.labels, f.session, f.id as loop_id,
      f.ended_at as failed_at, g.ended_at as green_at,
      (extract(epoch from g.ended_at - f.ended_at) * 1000)::bigint as red_ms,
      f.failed_phase, f.failed_subject, f.error_code, f.error,
      tried.loops as loops_between, tried.errors as errors_between,
      g.id as green_loop_id, f.start_position, g.end_position,
      f.start_position_text, position_text(g.end_position) as end_position_text
    from loop_times f
    left join lateral (
      select id, ended_at, start_position, end_position from finished_loops g
      where g.source = f.source and g.start_position > f.start_position and g.outcome = 'succeeded'
      order by g.start_position limit 1) g on true
    left join lateral (
      select count(*) as loops, coalesce(array_agg(b.error order by b.start_position), '{}') as errors
      from finished_loops b
      where b.source = f.source and b.start_position > f.start_position and b.outcome = 'failed'
        and b.start_position < coalesce(g.start_position, ${Number.MAX_SAFE_INTEGER})) tried on true
    where f.outcome = 'failed' and (
      select p.outcome from finished_loops p
      where p.source = f.source and p.start_position < f.start_position and p.outcome in ('succeeded', 'failed')
      order by p.start_position desc limit 1) is distinct from 'failed'`,
  // This view shows who waited how long, by day. A percentile of several days comes from loop_times, never from these.
  `create view waiting_by_developer as
    select workspace, developer, project, (started_at at time zone 'UTC')::date as day,
      count(*) as loops,
      count(*) filter (where outcome = 'failed') as failed,
      count(*) filter (where overtaken) as overtaken,
      sum(duration_ms)::bigint as waited_ms,
      percentile_cont(0.5) within group (order by ready_ms) as ready_p50_ms,
      percentile_cont(0.9) within group (order by ready_ms) as ready_p90_ms
    from loop_times group by workspace, developer, project, day`,
  // One row for each cause: a failed loop's first failed operation, and what fails outside of loops.
  `create view failures as
    select source, workspace, developer, project, 'skaffold' as upstream, labels, session, ended_at as failed_at,
      failed_phase as phase, failed_subject as subject, error_code, error, id as operation_id,
      end_position as position, end_position_text as position_text
    from loop_times where outcome = 'failed'
    union all
    select o.source, o.workspace, o.developer, o.project, o.upstream, s.labels, o.session, o.ended_at,
      o.kind, o.subject, o.error_code, o.error, o.id, o.end_position, position_text(o.end_position)
    from operations o left join sessions s using (session)
    where o.outcome = 'failed' and not o.injected and o.kind not in ('loop', 'job', 'pod')
      and (o.upstream <> 'skaffold' or (o.loop = 0 and not exists (
        select from operations e
        where e.session = o.session and e.runner = o.runner and e.loop = 0 and e.outcome = 'failed' and not e.injected
          and (e.ended_at, e.ended_ns, e.end_position) < (o.ended_at, o.ended_ns, o.end_position))))`,
  `create view vagrant_command_times as
    select c.source, c.workspace, c.developer, c.project, c.labels, c.session, c.job, c.command, c.args,
      case when c.scope = 'target' then c.scope_name end as machine,
      t.provider, t.box_name as box, t.box_version,
      c.started_at, c.duration_ms, c.outcome, c.exit_code, c.error_code, c.error, c.vagrant_version,
      c.start_position, c.start_position_text
    from command_times c
    left join vagrant_jobs j on j.session = c.session and j.job = c.job
    left join vagrant_targets t on t.session = c.session and j.scope = 'target' and t.id = j.scope_id`,
  `create view pod_runs as
    select o.source, o.workspace, o.developer, o.project, o.session, o.subject as pod, p.name,
      o.started_at, o.ended_at, o.duration_ms, o.outcome, o.error, p.state, p.gone,
      (select count(*) from rkt_apps a where a.session = o.session and a.pod = o.subject) as apps,
      (select count(*) from rkt_apps a where a.session = o.session and a.pod = o.subject and a.exit_code > 0)
        as failed_apps,
      o.start_position, position_text(o.start_position) as start_position_text
    from operations o left join rkt_pods p on p.session = o.session and p.pod = o.subject
    where o.kind = 'pod' and o.upstream = 'rkt'`,
  `create view slowest_artifacts as
    select workspace, project, artifact, (started_at at time zone 'UTC')::date as day,
      count(*) as builds, count(distinct developer) as developers,
      percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
      percentile_cont(0.9) within group (order by duration_ms) as p90_ms,
      sum(duration_ms)::bigint as built_ms
    from build_times where outcome in ('succeeded', 'failed') and not cache_hit
    group by workspace, project, artifact, day`,
  // A runner is one configuration. Its next loop that builds the artifact is found by the index of operations.
  `create view flaky_artifacts as
    select workspace, project, artifact, day, sum(builds)::bigint as builds, sum(failed)::bigint as failed,
      sum(flakes)::bigint as flakes, (sum(flakes) / sum(builds))::float8 as flake_rate,
      count(*) filter (where flakes > 0) as developers
    from (
      select b.workspace, b.project, b.artifact, (b.started_at at time zone 'UTC')::date as day, b.developer,
        count(*) as builds, count(*) filter (where b.outcome = 'failed') as failed,
        count(*) filter (where next.is_good) as flakes
      from build_times b left join lateral (
        select n.outcome = 'succeeded' as is_good from operations n
        where b.outcome = 'failed' and n.session = b.session and n.runner = b.runner and n.loop > b.loop
          and n.kind = 'build' and n.subject = b.artifact and n.outcome in ('succeeded', 'failed') and not n.cache_hit
          and not n.injected
        order by n.session, n.runner, n.loop limit 1) next on true
      where b.outcome in ('succeeded', 'failed') and not b.cache_hit and not b.injected
      group by 1, 2, 3, 4, 5) by_developer
    group by workspace, project, artifact, day having sum(flakes) > 0`,
];

/**
 * Skaffold looks for changes once a second by default (--watch-poll-interval), and begins a loop only when nothing has
 * changed for that long. A loop that begins sooner after the last one was due before that ended.
 */
function overtakenWithinMs(): number {
  return 500;
}
