import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The next build of an artifact may have no loop of its own: Skaffold before v1 reports none, so that all are outside of loops. */
export const flakesWithoutLoops: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw(flakyArtifacts).execute(db);
    await sql.raw(asItsReader).execute(db);
  },
};

// A runner is one configuration. Its next build of the artifact is found by the index of operations.
const flakyArtifacts = `create or replace view flaky_artifacts as
  select workspace, project, artifact, day, sum(builds)::bigint as builds, sum(failed)::bigint as failed,
    sum(flakes)::bigint as flakes, (sum(flakes) / sum(builds))::float8 as flake_rate,
    count(*) filter (where flakes > 0) as developers
  from (
    select b.workspace, b.project, b.artifact, (b.started_at at time zone 'UTC')::date as day, b.developer,
      count(*) as builds, count(*) filter (where b.outcome = 'failed') as failed,
      count(*) filter (where next.is_good) as flakes
    from build_times b left join lateral (
      select n.outcome = 'succeeded' as is_good from operations n
      where b.outcome = 'failed' and n.session = b.session and n.runner = b.runner
        and (n.loop, n.start_position) > (b.loop, b.start_position) and n.kind = 'build' and n.subject = b.artifact
        and n.outcome in ('succeeded', 'failed') and not n.cache_hit and not n.injected
      order by n.session, n.runner, n.loop, n.start_position limit 1) next on true
    where b.outcome in ('succeeded', 'failed') and not b.cache_hit and not b.injected
    group by 1, 2, 3, 4, 5) by_developer
  group by workspace, project, artifact, day having sum(flakes) > 0`;

// To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
const asItsReader = `do $$ begin
  if current_setting('server_version_num')::int >= 150000 then
    alter view flaky_artifacts set (security_invoker = true);
  end if;
end $$`;
