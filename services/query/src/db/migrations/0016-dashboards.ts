import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Each view's question about a month reads what happened in the month, however many operations there are. */
export const dashboards: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of [...indexes, ...reds(), ...views, asTheirReaders, "analyze operations"]) {
      await sql.raw(statement).execute(db);
    }
  },
};

const day = "(coalesce(started_at, ended_at) at time zone 'UTC')::date";
const isBuild = "kind = 'build' and upstream = 'skaffold'";
const isRanBuild = "kind = 'build' and not cache_hit and not injected and outcome in ('succeeded', 'failed')";
const failedBuild = `${isBuild} and outcome = 'failed' and not cache_hit and not injected`;

const indexes = [
  `create index builds_by_time on operations (coalesce(started_at, ended_at)) where ${isBuild}`,
  `create index failed_builds_by_day on operations ((${day})) where ${failedBuild}`,
  // The same index, with the columns by which flaky ones are counted.
  "drop index builds_by_day",
  `create index builds_by_day on operations ((${day}))
    include (workspace, developer, project, source, subject, started_at, ended_at, duration_ms, outcome, cache_hit, injected)
    where ${isBuild}`,
  // The builds of an artifact that ran, in their order. Not by hashes: Postgres then expects one row, and sorts thousands.
  `create index builds_by_artifact on operations (session, runner, subject, loop, start_position) include (outcome)
    where ${isRanBuild}`,
  // A failure is dated by its end. The conditions are those of the view failures.
  `create index failures_by_end on operations (ended_at)
    where outcome = 'failed' and not injected and kind not in ('loop', 'job', 'pod')
      and (upstream <> 'skaffold' or loop = 0)`,
  "create index finished_loops_by_day on finished_loops (((started_at at time zone 'UTC')::date))",
  "create index finished_loops_failed_by_end on finished_loops (ended_at) where outcome = 'failed'",
];

/** A statement's changes to the loops that are good or bad. Most updates only record when the next loop began. */
const triggers = {
  insert: { tables: "referencing new table as new_rows", changes: "select * from new_rows" },
  delete: { tables: "referencing old table as old_rows", changes: "select * from old_rows" },
  update: {
    tables: "referencing old table as old_rows new table as new_rows",
    changes: `
      select n.* from new_rows n left join old_rows o using (id)
      where (n.source, n.start_position, n.outcome, n.ended_at, n.end_position)
        is distinct from (o.source, o.start_position, o.outcome, o.ended_at, o.end_position)
      union all
      select o.* from old_rows o left join new_rows n using (id)
      where (n.source, n.start_position, n.outcome, n.ended_at, n.end_position)
        is distinct from (o.source, o.start_position, o.outcome, o.ended_at, o.end_position)`,
  },
};

const columns =
  "loop_id, source, start_position, failed_at, green_loop_id, green_at, green_start_position, green_end_position";

/** The rows that red_times has of these loops: `from` names finished_loops l, from a good loop (or the first) to a good one (or the last). */
function redsOf(schema: string, from: string): string {
  return `
    select f.id, f.source, f.start_position, f.ended_at, g.id, g.ended_at, g.start_position, g.end_position
    from (
      select l.id, l.source, l.start_position, l.ended_at, l.outcome,
        lag(l.outcome) over (partition by l.source order by l.start_position) as before,
        min(l.start_position) filter (where l.outcome = 'succeeded')
          over (partition by l.source order by l.start_position desc) as green
      from ${from} where l.outcome in ('succeeded', 'failed')) f
    left join ${schema}finished_loops g on g.source = f.source and g.start_position = f.green and g.outcome = 'succeeded'
    where f.outcome = 'failed' and f.before is distinct from 'failed'
    on conflict (loop_id) do nothing`;
}

/**
 * Keeps red_times by triggers, which see every change: loops that end, corrections, erased sessions, rebuilds. What a loop
 * changes lies between the good loop before it and the good one after it, so only that is written again.
 */
function reds(): readonly string[] {
  return [
    `create table red_times (
      -- Id of the failed loop's operation.
      loop_id text primary key,
      source text not null,
      start_position bigint not null,
      failed_at timestamptz,
      -- The next good loop. Null: there is none yet.
      green_loop_id text,
      green_at timestamptz,
      green_start_position bigint,
      green_end_position bigint
    )`,
    "create index on red_times (source, start_position)",
    "create index on red_times (failed_at)",
    "create index red_now on red_times (source) where green_at is null",
    `insert into red_times (${columns}) ${redsOf("", "finished_loops l")}`,
    ...Object.entries(triggers).flatMap(([verb, { tables, changes }]) => [
      // The schema is that of the table, which a rebuild renames.
      `create function colour_${verb}_of_loops() returns trigger language plpgsql as $function$
      declare
        around constant text := $sql$
          with changed as (
            select source, min(start_position) as first, max(start_position) as last from (${changes}) change
            where outcome in ('succeeded', 'failed') group by source),
          around as (
            select source,
              coalesce((select max(l.start_position) from %1$I.finished_loops l
                where l.source = c.source and l.start_position < c.first and l.outcome = 'succeeded'),
                ${Number.MIN_SAFE_INTEGER}) as good,
              coalesce((select min(l.start_position) from %1$I.finished_loops l
                where l.source = c.source and l.start_position > c.last and l.outcome = 'succeeded'),
                ${Number.MAX_SAFE_INTEGER}) as next_good
            from changed c)
          $sql$;
      begin
        if exists (select from (${changes}) change where outcome in ('succeeded', 'failed')) then
          execute format(around || $sql$
            delete from %1$I.red_times r using around a
            where r.source = a.source and r.start_position > a.good and r.start_position < a.next_good$sql$, tg_table_schema);
          execute format(around || $sql$
            insert into %1$I.red_times (${columns})
            ${redsOf(
              "%1$I.",
              `around a join %1$I.finished_loops l
                on l.source = a.source and l.start_position > a.good and l.start_position <= a.next_good`,
            )}$sql$, tg_table_schema);
        end if;
        return null;
      end $function$`,
      `create trigger colour_${verb} after ${verb} on finished_loops ${tables}
        for each statement execute function colour_${verb}_of_loops()`,
    ]),
    "analyze red_times",
  ];
}

// Grouped first by what differs most: to sort by the workspace, which is the same in most rows, compares all columns.
// They read the table, because Postgres reads an index alone only where no join is left out.
const views = [
  `create or replace view build_times_daily as
    select workspace, developer, project, artifact, day,
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
    from (
      select workspace, developer, project, subject as artifact, ${day} as day, duration_ms, outcome, cache_hit,
        outcome in ('succeeded', 'failed') and not cache_hit as ran
      from operations where ${isBuild}) build
    group by developer, artifact, project, day, workspace`,
  `create or replace view slowest_artifacts as
    select workspace, project, subject as artifact, ${day} as day,
      count(*) as builds, count(distinct developer) as developers,
      percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
      percentile_cont(0.9) within group (order by duration_ms) as p90_ms,
      sum(duration_ms)::bigint as built_ms
    from operations where ${isBuild} and outcome in ('succeeded', 'failed') and not cache_hit
    group by subject, project, ${day}, workspace`,
  // All builds are counted from an index alone, and only of those that failed the next one is looked for. A runner is one
  // configuration.
  `create or replace view flaky_artifacts as
    select workspace, project, artifact, day, sum(builds)::bigint as builds, sum(failed)::bigint as failed,
      sum(flakes)::bigint as flakes, (sum(flakes) / sum(builds))::float8 as flake_rate, sum(developers)::bigint as developers
    from (
      select workspace, project, subject as artifact, ${day} as day,
        count(*) as builds, count(*) filter (where outcome = 'failed') as failed, 0 as flakes, 0 as developers
      from operations
      where ${isBuild} and outcome in ('succeeded', 'failed') and not cache_hit and not injected
      group by 1, 2, 3, 4
      union all
      select workspace, project, subject, day, 0, 0, count(*), count(distinct developer)
      from (select *, ${day} as day from operations where ${failedBuild}) b cross join lateral (
        select n.outcome as next_outcome from operations n
        where n.session = b.session and n.runner = b.runner and n.subject = b.subject
          and (n.loop, n.start_position) > (b.loop, b.start_position)
          and n.kind = 'build' and not n.cache_hit and not n.injected and n.outcome in ('succeeded', 'failed')
        order by n.loop, n.start_position limit 1) next
      where next_outcome = 'succeeded'
      group by 1, 2, 3, 4) part
    group by workspace, project, artifact, day having sum(flakes) > 0`,
  `create or replace view time_to_green as
    select f.source, f.workspace, f.developer, f.project, f.labels, f.session, f.id as loop_id,
      r.failed_at, r.green_at,
      (extract(epoch from r.green_at - r.failed_at) * 1000)::bigint as red_ms,
      f.failed_phase, f.failed_subject, f.error_code, f.error,
      tried.loops as loops_between, tried.errors as errors_between,
      r.green_loop_id, f.start_position, r.green_end_position as end_position,
      f.start_position_text, position_text(r.green_end_position) as end_position_text
    from red_times r join loop_times f on f.id = r.loop_id
    left join lateral (
      select count(*) as loops, coalesce(array_agg(b.error order by b.start_position), '{}') as errors
      from finished_loops b
      where b.source = r.source and b.start_position > r.start_position and b.outcome = 'failed'
        and b.start_position < coalesce(r.green_start_position, ${Number.MAX_SAFE_INTEGER})) tried on true`,
];

// To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
const asTheirReaders = `do $$ begin
  if current_setting('server_version_num')::int >= 150000 then
    alter view build_times_daily set (security_invoker = true);
    alter view slowest_artifacts set (security_invoker = true);
    alter view flaky_artifacts set (security_invoker = true);
    alter view time_to_green set (security_invoker = true);
  end if;
end $$`;
