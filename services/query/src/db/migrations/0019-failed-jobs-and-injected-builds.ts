import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";
import { counted, countingFunctions, recount } from "./0013-build-months.ts";
import { failures } from "./0017-causes-and-shares.ts";
import { buildTimesDaily } from "./0018-build-days.ts";

/** What counts as a failure, and which builds count. */
export const failedJobsAndInjectedBuilds: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of [...failedJobs, ...injectedBuilds, asTheirReaders]) await sql.raw(statement).execute(db);
  },
};

/** A job of Vagrant that failed without a command (setting up, or before its command began) is a cause of a failure, too. */
const failedJobs = [
  "create index failed_jobs on operations (ended_at) where kind = 'job' and outcome = 'failed' and not injected",
  // A failed command's job, whose subject is the command's instance, is no second cause.
  `create or replace view failures as ${failures}
    union all
    select o.source, o.workspace, o.developer, o.project, o.upstream, s.labels, o.session, o.ended_at,
      o.kind, coalesce(nullif(j.command, ''), nullif(j.operation, ''), ''), o.error_code, o.error, o.id,
      o.end_position, position_text(o.end_position)
    from operations o left join sessions s using (session)
      left join vagrant_jobs j on j.session = o.session and j.job = o.subject
    where o.kind = 'job' and o.outcome = 'failed' and not o.injected and not exists (
      select from operations c
      where c.instance = o.subject and c.instance <> '' and c.session = o.session and c.kind = 'command'
        and c.outcome = 'failed')`,
];

const day = "(coalesce(started_at, ended_at) at time zone 'UTC')::date";
const isBuild = "kind = 'build' and upstream = 'skaffold'";
const isOwnBuild = `${isBuild} and not injected`;

/** Months and days with injected builds: they are rare, and the counts of all others stay. */
const injected = `select workspace, project, subject, ${day} as day from operations where ${isBuild} and injected`;

/** A build that a client put into Skaffold's stream was done by nobody, so no count, duration or percentile has it. */
const injectedBuilds = [
  ...countingFunctions(`${counted} and not injected`),
  `delete from build_months m using (select distinct workspace, project, subject from (${injected}) of_them) i
    where m.workspace = i.workspace and m.project = i.project and m.artifact = i.subject`,
  recount(
    `not injected and (workspace, project, artifact) in (select workspace, project, subject from (${injected}) of_them)`,
  ),
  `insert into changed_build_days select distinct workspace, day from (${injected}) of_them where day is not null on conflict do nothing`,
  `delete from build_days d using (select distinct workspace, day from (${injected}) of_them) i
    where d.workspace = i.workspace and d.day = i.day`,
  buildTimesDaily(isOwnBuild),
  `create or replace view slowest_artifacts as
    select workspace, project, subject as artifact, ${day} as day,
      count(*) as builds, count(distinct developer) as developers,
      percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
      percentile_cont(0.9) within group (order by duration_ms) as p90_ms,
      sum(duration_ms)::bigint as built_ms
    from operations where ${isOwnBuild} and outcome in ('succeeded', 'failed') and not cache_hit
    group by subject, project, ${day}, workspace`,
];

// To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
const asTheirReaders = `do $$ begin
  if current_setting('server_version_num')::int >= 150000 then
    alter view failures set (security_invoker = true);
    alter view build_times_daily set (security_invoker = true);
    alter view slowest_artifacts set (security_invoker = true);
  end if;
end $$`;
