import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The rows of build_times_daily are kept for the days whose builds no longer change. */
export const buildDays: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of [...tables, ...marks(), buildTimesDaily(isBuild), asItsReader])
      await sql.raw(statement).execute(db);
  },
};

const day = "(coalesce(started_at, ended_at) at time zone 'UTC')::date";
const isBuild = "kind = 'build' and upstream = 'skaffold'";

const tables = [
  `create table build_days (
    workspace text not null,
    developer text not null,
    project text not null,
    artifact text not null,
    day date not null,
    builds int not null,
    failed int not null,
    cached int not null,
    canceled int not null,
    unknown int not null,
    -- Null: no build ran, or the duration of none is known.
    p50_ms float8,
    p90_ms float8,
    p99_ms float8
  )`,
  "create index on build_days (day)",
  "create index on build_days (developer, day)",
  // A day has a row here, or rows in build_days, or no builds.
  `create table changed_build_days (
    workspace text not null,
    day date not null,
    primary key (workspace, day)
  )`,
  `insert into changed_build_days select distinct workspace, ${day} from operations where ${isBuild} and ${day} is not null`,
];

const triggers = {
  insert: { tables: "referencing new table as new_rows", changes: "select * from new_rows" },
  delete: { tables: "referencing old table as old_rows", changes: "select * from old_rows" },
  update: {
    tables: "referencing old table as old_rows new table as new_rows",
    changes: "select * from new_rows union all select * from old_rows",
  },
};

/** Triggers see what each statement changes, so that late, corrected and erased builds change their days, too. */
function marks(): readonly string[] {
  return Object.entries(triggers).flatMap(([verb, { tables, changes }]) => {
    const changed = `select workspace, ${day} as day from (${changes}) changed where ${isBuild}`;
    return [
      // The schema is that of the table, which a rebuild renames.
      `create function mark_${verb}_of_builds() returns trigger language plpgsql as $function$
      declare
        marked bigint;
      begin
        if exists (${changed}) then
          execute format($sql$
            insert into %1$I.changed_build_days
            select distinct workspace, day from (${changed}) build where day is not null
            on conflict do nothing$sql$, tg_table_schema);
          get diagnostics marked = row_count;
          if marked > 0 then
            execute format($sql$
              delete from %1$I.build_days d using (select distinct workspace, day from (${changed}) build) c
              where d.workspace = c.workspace and d.day = c.day$sql$, tg_table_schema);
          end if;
        end if;
        return null;
      end $function$`,
      `create trigger mark_${verb} after ${verb} on operations ${tables}
        for each statement execute function mark_${verb}_of_builds()`,
    ];
  });
}

/** The definition of a row of build_times_daily, without the columns by which `from` has found the builds. */
const counted = (from: string, isCounted: string) => `
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
    from operations where ${isCounted} and ${from}) build
  group by developer, artifact, project`;

const figures = "builds, failed, failure_rate, p50_ms, p90_ms, p99_ms, cached, canceled, unknown";

/**
 * The view of the builds that are counted. Laterally: Postgres then looks each changed day up in the index of days, however
 * many days it expects to be changed. All parts have the same types, without which Postgres does not look for the asked days
 * in each of them.
 */
export const buildTimesDaily = (isCounted: string) => `create or replace view build_times_daily as
  select workspace, developer, project, artifact, day, builds::bigint, failed::bigint,
    failed::float8 / nullif(builds, 0) as failure_rate, p50_ms, p90_ms, p99_ms, cached::bigint, canceled::bigint, unknown::bigint
  from build_days
  union all
  select c.workspace, developer, project, artifact, c.day, ${figures}
  from changed_build_days c cross join lateral (${counted(`workspace = c.workspace and ${day} = c.day`, isCounted)}) live
  union all
  select w.workspace, developer, project, artifact, null::date, ${figures}
  from (select distinct workspace from operations where ${isCounted} and ${day} is null) w
    cross join lateral (${counted(`workspace = w.workspace and ${day} is null`, isCounted)}) undated`;

// To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
const asItsReader = `do $$ begin
  if current_setting('server_version_num')::int >= 150000 then
    alter view build_times_daily set (security_invoker = true);
  end if;
end $$`;
