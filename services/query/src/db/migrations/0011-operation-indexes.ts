import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Indexes for the filters of ListOperations, and for the time ranges of the views about builds. */
export const operationIndexes: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  // Lists by source are read by source, kind and outcome.
  `drop index operations_source_start_position_idx`,
  // ListOperations reads each combination of these from its newest operation on. '': still running.
  `create index operations_by_workspace on operations (workspace, kind, coalesce(outcome, ''), start_position)`,
  `create index operations_by_source on operations (source, kind, coalesce(outcome, ''), start_position)`,
  `create index operations_by_subject on operations (subject, start_position) where subject <> ''`,
  `create index operations_by_instance on operations (instance, start_position) where instance <> ''`,
  `create index operations_by_time on operations (workspace, coalesce(started_at, ended_at), start_position)`,
  // Holds all that is counted, so that a range of days is read from the index alone.
  `create index builds_by_day on operations (((coalesce(started_at, ended_at) at time zone 'UTC')::date))
    include (workspace, developer, project, source, subject, started_at, ended_at, duration_ms, outcome, cache_hit)
    where kind = 'build' and upstream = 'skaffold'`,
  `create index builds_by_developer on operations (developer, project) where kind = 'build' and upstream = 'skaffold'`,
  `create index failures_by_time on operations (coalesce(started_at, ended_at)) where outcome = 'failed'`,
  // An outer join, which Postgres leaves out where nothing of the session is asked for. Every operation has a session.
  `create or replace view build_times as
    select o.workspace, o.developer, o.project, o.source, s.labels, o.subject as artifact, o.session, o.runner, o.loop,
      coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome, o.cache_hit, o.error_code, o.error,
      o.platform, s.upstream_version as skaffold_version, o.injected, o.start_position,
      position_text(o.start_position) as start_position_text
    from operations o left join sessions s using (session)
    where o.kind = 'build' and o.upstream = 'skaffold'`,
];
