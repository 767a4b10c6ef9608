import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Counts of builds by month and duration, so that percentiles of years need not sort every build. */
export const buildMonths: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

/** Triggers see what each statement changes, so that erasing and correcting rows keeps the counts right, too. */
const triggers = {
  insert: { tables: "referencing new table as new_rows", changes: "select 1 as sign, * from new_rows" },
  delete: { tables: "referencing old table as old_rows", changes: "select -1 as sign, * from old_rows" },
  update: {
    tables: "referencing old table as old_rows new table as new_rows",
    changes: "select 1 as sign, * from new_rows union all select -1, * from old_rows",
  },
};

/** Builds that are over. Most updates end one, and so only add to the counts. */
export const counted = "kind = 'build' and upstream = 'skaffold' and (outcome is not null or cache_hit)";

const removal = (counted: string) => `if exists (select from old_rows where ${counted}) then
          execute format(
            'delete from %I.build_months where builds = 0 and cached = 0 and canceled = 0 and unknown = 0', tg_table_schema);
        end if;`;

/** Count the `counted` builds that a statement changes. The schema is that of the table, which a rebuild renames. */
export function countingFunctions(counted: string): readonly string[] {
  return Object.entries(triggers).map(([verb, { changes }]) =>
    `create or replace function count_${verb}_of_builds() returns trigger language plpgsql as $function$
    begin
      if exists (select from (${changes}) changed where ${counted}) then
        execute format($sql$
          insert into %1$I.build_months as m
            (workspace, month, project, artifact, bucket, builds, failed, cached, canceled, unknown)
          select workspace, 
            coalesce(date_trunc('month', coalesce(started_at, ended_at) at time zone 'UTC')::date, '-infinity'), project, subject,
            case when ran and duration_ms is not null then %1$I.duration_bucket(duration_ms) else -1 end as bucket,
            sum(sign) filter (where ran), sum(sign) filter (where ran and outcome = 'failed'),
            sum(sign) filter (where cache_hit), sum(sign) filter (where outcome = 'canceled'),
            sum(sign) filter (where outcome = 'unknown')
          from (
            select *, coalesce(outcome in ('succeeded', 'failed') and not cache_hit, false) as ran from (${changes}) changed
            where ${counted}) build
          group by 1, 2, 3, 4, 5
          on conflict (workspace, month, project, artifact, bucket) do update set
            builds = m.builds + excluded.builds, failed = m.failed + excluded.failed, cached = m.cached + excluded.cached,
            canceled = m.canceled + excluded.canceled, unknown = m.unknown + excluded.unknown$sql$, tg_table_schema);
        ${verb === "insert" ? "" : removal(counted)}
      end if;
      return null;
    end $function$`.replaceAll(/sum\(sign\) filter (\(where [^)]*\))/g, "coalesce(sum(sign) filter $1, 0)"),
  );
}

/** The counts of all builds that are over and fulfil a condition. */
export const recount = (where: string) => `
    insert into build_months (workspace, month, project, artifact, bucket, builds, failed, cached, canceled, unknown)
    select workspace, coalesce(date_trunc('month', started_at at time zone 'UTC')::date, '-infinity'), project, artifact,
      case when ran and duration_ms is not null then duration_bucket(duration_ms) else -1 end as bucket,
      count(*) filter (where ran), count(*) filter (where ran and outcome = 'failed'), count(*) filter (where cache_hit),
      count(*) filter (where outcome = 'canceled'), count(*) filter (where outcome = 'unknown')
    from (select *, coalesce(outcome in ('succeeded', 'failed') and not cache_hit, false) as ran from build_times) build
    where (outcome is not null or cache_hit) and ${where} group by 1, 2, 3, 4, 5`;

const statements = [
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
  ...countingFunctions(counted),
  ...Object.entries(triggers).map(
    ([verb, { tables }]) =>
      `create trigger count_${verb} after ${verb} on operations ${tables}
        for each statement execute function count_${verb}_of_builds()`,
  ),
  recount("true"),
];
