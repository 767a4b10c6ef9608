import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Views for questions about builds. Percentiles cover only builds that ran: succeeded or failed, not cached. */
export const buildTimes: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  `create view build_times as
    select o.workspace, o.developer, o.project, o.source, s.labels, o.subject as artifact, o.session, o.runner, o.loop,
      coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome, o.cache_hit, o.error_code, o.error,
      o.platform, s.upstream_version as skaffold_version, o.injected, o.start_position
    from operations o join sessions s using (session)
    where o.kind = 'build' and o.upstream = 'skaffold'`,
  `create view build_times_daily as
    select workspace, developer, project, artifact, (started_at at time zone 'UTC')::date as day,
      count(*) filter (where ran) as builds,
      count(*) filter (where ran and outcome = 'failed') as failed,
      (count(*) filter (where ran and outcome = 'failed'))::float8 / nullif(count(*) filter (where ran), 0)
        as failure_rate,
      percentile_cont(0.5) within group (order by duration_ms) filter (where ran) as p50_ms,
      percentile_cont(0.9) within group (order by duration_ms) filter (where ran) as p90_ms,
      percentile_cont(0.99) within group (order by duration_ms) filter (where ran) as p99_ms,
      count(*) filter (where cache_hit) as cached,
      count(*) filter (where outcome = 'canceled') as canceled,
      count(*) filter (where outcome = 'unknown') as unknown
    from (select *, outcome in ('succeeded', 'failed') and not cache_hit as ran from build_times)
    group by workspace, developer, project, artifact, day`,
];
