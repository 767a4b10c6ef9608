import { day, isBuild } from "./conditions.ts";

/** Builds counted by month and duration, so that percentiles of years need not sort every build. */
export const buildMonths: readonly string[] = [
  `create table build_months (
    workspace text not null,
    project text not null,
    artifact text not null,
    -- First day, UTC. -infinity: of builds without a time.
    month date not null,
    -- Of the duration: see duration_bucket. -1: the build did not run, or its duration is not known.
    bucket int not null,
    builds bigint not null,
    failed bigint not null,
    cached bigint not null,
    canceled bigint not null,
    unknown bigint not null,
    primary key (workspace, month, project, artifact, bucket)
  ) with (fillfactor = 70)`,
  // Each bucket ends at 1.02 times its begin, so that its middle is at most 1 % off.
  `create function duration_bucket(duration_ms bigint) returns int language sql immutable parallel safe
    return floor(ln(greatest(duration_ms, 1)::float8) / ln(1.02::float8))::int`,
  `create function bucket_middle(bucket int) returns float8 language sql immutable parallel safe
    return case when bucket = 0 then 1 else power(1.02::float8, bucket + 0.5) end`,
  `create function bucket_percentile(buckets int[], builds bigint[], part float8) returns float8
    language sql immutable parallel safe
    return (
      select bucket_middle(bucket) from (
        select bucket, sum(sum(count)) over (order by bucket) as up_to, sum(sum(count)) over () as total
        from unnest(buckets, builds) as given (bucket, count) where bucket >= 0 group by bucket) counted
      where up_to >= part * total and total > 0 order by bucket limit 1)`,
];

/** The rows of build_times_daily for the days whose builds no longer change. */
export const buildTables: readonly string[] = [
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
];

/**
 * The builds of sessions that ended longer ago than their workspace keeps facts, counted by day and duration, without developers.
 * By session, so that none counts twice: neither where the log is read again, nor where one is imported again.
 */
export const expiredBuilds = `create table expired_builds (
    workspace text not null,
    session text not null,
    project text not null,
    artifact text not null,
    -- UTC. -infinity: of builds without a time.
    day date not null,
    -- Of the duration: see duration_bucket. -1: the build did not run, or its duration is not known.
    bucket int not null,
    builds int not null,
    failed int not null,
    cached int not null,
    canceled int not null,
    unknown int not null,
    primary key (workspace, day, session, project, artifact, bucket)
  )`;

const countingTriggers = {
  insert: { tables: "referencing new table as new_rows", changes: "select 1 as sign, * from new_rows" },
  delete: { tables: "referencing old table as old_rows", changes: "select -1 as sign, * from old_rows" },
  update: {
    tables: "referencing old table as old_rows new table as new_rows",
    changes: "select 1 as sign, * from new_rows union all select -1, * from old_rows",
  },
};

const markingTriggers = {
  insert: { ...countingTriggers.insert, changes: "select * from new_rows" },
  delete: { ...countingTriggers.delete, changes: "select * from old_rows" },
  update: { ...countingTriggers.update, changes: "select * from new_rows union all select * from old_rows" },
};

/** Triggers see what each statement changes, so that late, corrected and erased builds keep the counts right, too. */
export function buildTriggers(): readonly string[] {
  return [...countMonths(), ...markDays()];
}

/** Builds that are over. Most updates end one, and so only add to the counts. */
export const counted = `${isBuild} and (outcome is not null or cache_hit) and not injected`;

/** In a trigger: the internal schema beside that of its table. A rebuild renames both. */
const internal = "tg_table_schema || '_internal'";

const removal = `if exists (select from old_rows where ${counted}) then
          execute format(
            'delete from %I.build_months where builds = 0 and cached = 0 and canceled = 0 and unknown = 0', ${internal});
        end if;`;

function countMonths(): readonly string[] {
  return Object.entries(countingTriggers).flatMap(([verb, { tables, changes }]) => [
    `create function count_${verb}_of_builds() returns trigger language plpgsql as $function$
    begin
      if exists (select from (${changes}) changed where ${counted}) then
        execute format($sql$
          insert into %1$I.build_months as m
            (workspace, month, project, artifact, bucket, builds, failed, cached, canceled, unknown)
          select workspace, 
            coalesce(date_trunc('month', coalesce(started_at, ended_at) at time zone 'UTC')::date, '-infinity'), project, subject,
            case when ran and duration_ms is not null then %1$I.duration_bucket(duration_ms) else -1 end as bucket,
            coalesce(sum(sign) filter (where ran), 0), coalesce(sum(sign) filter (where ran and outcome = 'failed'), 0),
            coalesce(sum(sign) filter (where cache_hit), 0), coalesce(sum(sign) filter (where outcome = 'canceled'), 0),
            coalesce(sum(sign) filter (where outcome = 'unknown'), 0)
          from (
            select *, coalesce(outcome in ('succeeded', 'failed') and not cache_hit, false) as ran from (${changes}) changed
            where ${counted}) build
          group by 1, 2, 3, 4, 5
          on conflict (workspace, month, project, artifact, bucket) do update set
            builds = m.builds + excluded.builds, failed = m.failed + excluded.failed, cached = m.cached + excluded.cached,
            canceled = m.canceled + excluded.canceled, unknown = m.unknown + excluded.unknown$sql$, ${internal});
        ${verb === "insert" ? "" : removal}
      end if;
      return null;
    end $function$`,
    `create trigger count_${verb} after ${verb} on operations ${tables}
        for each statement execute function count_${verb}_of_builds()`,
  ]);
}

/** The schema is that of the table, which a rebuild renames. */
function markDays(): readonly string[] {
  return Object.entries(markingTriggers).flatMap(([verb, { tables, changes }]) => {
    const changed = `select workspace, ${day} as day from (${changes}) changed where ${isBuild}`;
    return [
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
