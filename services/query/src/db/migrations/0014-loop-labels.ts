import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The labels of dev loops that began on another branch or commit than their session. */
export const loopLabels: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

/** The session's labels `s` with what had changed by the loop's start, `c`: null for a label that was no longer there. */
const labels =
  "case when c.labels is null then s.labels else jsonb_strip_nulls(coalesce(s.labels, '{}') || c.labels) end";

const statements = [
  `create table session_labels (
    source text not null,
    session text not null,
    -- When the dev loop began from which on they hold.
    at timestamptz not null,
    ns int not null,
    position bigint not null,
    -- All that may differ from the session's own; null: the session has none of this name.
    labels jsonb not null,
    primary key (session, at, ns, position)
  )`,
  // One row at most for a loop: a view that joins it costs nothing where no label is asked for.
  `create table loop_labels (
    source text not null,
    session text not null,
    runner int not null,
    loop int not null,
    -- As in session_labels.
    labels jsonb not null,
    primary key (session, runner, loop)
  )`,
  `create or replace view loop_times as
    select l.source, l.workspace, l.developer, l.project, ${labels} as labels, l.session, l.runner, l.loop, l.iteration, l.id,
      l.started_at, l.ended_at, l.outcome, l.duration_ms,
      case when l.outcome = 'succeeded' then l.duration_ms end as ready_ms,
      coalesce(l.next_after_ms < 500, false) as overtaken,
      l.failed_phase, l.failed_subject, l.error_code, l.error,
      l.sync_ms, l.build_ms, l.test_ms, l.render_ms, l.deploy_ms, l.check_ms, l.other_ms,
      l.builds, l.cached, l.waits, l.next_after_ms, l.start_position, l.end_position,
      position_text(l.start_position) as start_position_text, position_text(l.end_position) as end_position_text
    from finished_loops l left join sessions s using (session) left join loop_labels c using (session, runner, loop)`,
  `create or replace view build_times as
    select o.workspace, o.developer, o.project, o.source, ${labels} as labels, o.subject as artifact, o.session, o.runner, o.loop,
      coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome, o.cache_hit, o.error_code, o.error,
      o.platform, s.upstream_version as skaffold_version, o.injected, o.start_position,
      position_text(o.start_position) as start_position_text
    from operations o left join sessions s using (session) left join loop_labels c using (session, runner, loop)
    where o.kind = 'build' and o.upstream = 'skaffold'`,
  `create or replace view loops as
    select o.source, o.workspace, o.developer, o.project, o.upstream, o.session, o.runner, o.loop, o.iteration, o.id,
      o.started_at, o.started_ns, o.ended_at, o.ended_ns, o.duration_ms, o.outcome, o.error_code, o.error, o.injected,
      o.start_position, o.end_position,
      position_text(o.start_position) as start_position_text, position_text(o.end_position) as end_position_text,
      ${labels} as labels
    from operations o left join sessions s using (session) left join loop_labels c using (session, runner, loop)
    where o.kind = 'loop'`,
  // To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
  `do $$ begin
    if current_setting('server_version_num')::int >= 150000 then
      alter view loop_times set (security_invoker = true);
      alter view build_times set (security_invoker = true);
      alter view loops set (security_invoker = true);
    end if;
  end $$`,
];
