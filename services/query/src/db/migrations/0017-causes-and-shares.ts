import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Causes of failures outside of loops, round by round, and how much of a loop each phase took. */
export const causesAndShares: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

/** The session's labels `s` with what had changed by the loop's start, `c`: as in 0014. */
const labels =
  "case when c.labels is null then s.labels else jsonb_strip_nulls(coalesce(s.labels, '{}') || c.labels) end";

const phases = ["sync", "build", "test", "render", "deploy", "check", "other"] as const;
const shares = phases.map((phase) => `l.${phase}_ms::float8 / nullif(l.duration_ms, 0) as ${phase}_share`).join(", ");

const isFailedStep = "outcome = 'failed' and not injected and kind not in ('loop', 'job', 'pod')";

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
          and e.outcome = 'failed' and not e.injected and e.kind not in ('loop', 'job', 'pod')
          and (e.ended_at, e.ended_ns, e.end_position) < (o.ended_at, o.ended_ns, o.end_position)
          and (o.loop <> 0 or (
            e.ended_at > coalesce(o.started_at, o.ended_at) - interval '500 ms'
            and (e.kind, e.subject) <> (o.kind, o.subject))))`;

/** Failed loops, and failed steps that are causes by themselves. */
export const failures = `
  select source, workspace, developer, project, 'skaffold' as upstream, labels, session, ended_at as failed_at,
    failed_phase as phase, failed_subject as subject, error_code, error, id as operation_id,
    end_position as position, end_position_text as position_text
  from loop_times where outcome = 'failed'
  union all
  select o.source, o.workspace, o.developer, o.project, o.upstream, ${labels}, o.session, o.ended_at,
    o.kind, o.subject, o.error_code, o.error, o.id, o.end_position, position_text(o.end_position)
  from operations o left join sessions s using (session) left join loop_labels c using (session, runner, loop)
  where o.outcome = 'failed' and not o.injected and o.kind not in ('loop', 'job', 'pod')
    and (o.upstream <> 'skaffold' or (${isCause}))`;

const statements = [
  // Now also the failed steps in loops, of which those in a loop without a known end are causes.
  "drop index failures_by_end",
  `create index failures_by_end on operations (ended_at) where ${isFailedStep}`,
  `create index failed_steps on operations (session, runner, loop, ended_at) where ${isFailedStep}`,
  "create index finished_loops_unknown on finished_loops (session, runner, loop) where outcome = 'unknown'",
  // command_times dates a command so.
  `create index commands_by_time on operations (coalesce(started_at, ended_at))
    where kind = 'command' and upstream = 'vagrant'`,
  `create or replace view loop_times as
    select l.source, l.workspace, l.developer, l.project, ${labels} as labels, l.session, l.runner, l.loop, l.iteration, l.id,
      l.started_at, l.ended_at, l.outcome, l.duration_ms,
      case when l.outcome = 'succeeded' then l.duration_ms end as ready_ms,
      coalesce(l.next_after_ms < 500, false) as overtaken,
      l.failed_phase, l.failed_subject, l.error_code, l.error,
      l.sync_ms, l.build_ms, l.test_ms, l.render_ms, l.deploy_ms, l.check_ms, l.other_ms,
      l.builds, l.cached, l.waits, l.next_after_ms, l.start_position, l.end_position,
      position_text(l.start_position) as start_position_text, position_text(l.end_position) as end_position_text,
      ${shares}
    from finished_loops l left join sessions s using (session) left join loop_labels c using (session, runner, loop)`,
  `create or replace view failures as ${failures}`,
  // The same as in the statistics: 0 instead of null on a day of which no loop's end is known.
  `create or replace view waiting_by_developer as
    select workspace, developer, project, (started_at at time zone 'UTC')::date as day,
      count(*) as loops,
      count(*) filter (where outcome = 'failed') as failed,
      count(*) filter (where overtaken) as overtaken,
      coalesce(sum(duration_ms), 0)::bigint as waited_ms,
      percentile_cont(0.5) within group (order by ready_ms) as ready_p50_ms,
      percentile_cont(0.9) within group (order by ready_ms) as ready_p90_ms
    from loop_times group by workspace, developer, project, day`,
  // To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
  `do $$ begin
    if current_setting('server_version_num')::int >= 150000 then
      alter view loop_times set (security_invoker = true);
      alter view failures set (security_invoker = true);
      alter view waiting_by_developer set (security_invoker = true);
    end if;
  end $$`,
];
