import { causeColumns } from "./causes.ts";
import { isFailedLoop } from "./conditions.ts";

/** Skaffold's dev loops that are over: what was waited for, what failed first, and how long it took until all was good again. */
export const loopTables: readonly string[] = [
  `create table finished_loops (
    source text not null,
    workspace text not null,
    developer text not null,
    project text not null,
    upstream text not null,
    -- Id of the loop's operation.
    id text primary key,
    session text not null,
    runner int not null,
    loop int not null,
    iteration int,
    started_at timestamptz not null,
    ended_at timestamptz,
    -- Null where the end is not known.
    duration_ms bigint,
    outcome text not null,
    -- The operation that failed first, also in a loop that went on and succeeded. Empty: nothing failed, or Skaffold
    -- reported none.
    failed_phase text not null,
    failed_subject text not null,
    error_code text not null,
    error text not null,
    -- How long the loop waited for each phase. They add up to duration_ms, and are null with it.
    sync_ms bigint,
    build_ms bigint,
    test_ms bigint,
    render_ms bigint,
    deploy_ms bigint,
    check_ms bigint,
    other_ms bigint,
    -- Builds that ran, and builds that the cache answered.
    builds int not null,
    cached int not null,
    -- What it waited for at each moment: [{phase, subject, from_ms, to_ms}].
    waits jsonb not null,
    -- From this loop's end to the next one's start in the same runner.
    next_after_ms bigint,
    start_position bigint not null,
    end_position bigint not null,${causeColumns}
  )`,
  `create index on finished_loops (session, runner, loop)`,
  // The next good or bad loop of a source is found in one step, however many others are between.
  "create index finished_loops_by_source on finished_loops (source, outcome, start_position)",
  // Holds all that a page of trends counts, so that a range of time is read from the index alone.
  `create index finished_loops_by_time on finished_loops (started_at)
    include (workspace, developer, project, source, outcome, duration_ms, next_after_ms,
      sync_ms, build_ms, test_ms, render_ms, deploy_ms, check_ms, other_ms)`,
  `create index finished_loops_failed on finished_loops (started_at) where outcome = 'failed'`,
  "create index finished_loops_by_day on finished_loops (((started_at at time zone 'UTC')::date))",
  `create index finished_loops_failed_by_end on finished_loops (ended_at) where ${isFailedLoop}`,
  "create index finished_loops_unknown on finished_loops (session, runner, loop) where outcome = 'unknown'",
  // The labels of dev loops that began on another branch or commit than their session.
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

/**
 * The rows that red_times has of loops, from a good loop (or the first) to a good one (or the last), those of `around`: the
 * first bad loop after each good one, with the next good one.
 */
const redsAround = `
    select f.id, f.source, f.start_position, f.ended_at, g.id, g.ended_at, g.start_position, g.end_position
    from around a
    cross join lateral (
      select a.good as position
      union all
      select l.start_position from %1$I.finished_loops l
      where l.source = a.source and l.start_position > a.good and l.start_position < a.next_good
        and l.outcome = 'succeeded') good
    cross join lateral (
      select l.* from %1$I.finished_loops l
      where l.source = a.source and l.start_position > good.position and l.outcome = 'failed'
      order by l.start_position limit 1) f
    left join lateral (
      select l.* from %1$I.finished_loops l
      where l.source = a.source and l.start_position > good.position and l.outcome = 'succeeded'
      order by l.start_position limit 1) g on true
    where g.start_position is null or f.start_position < g.start_position
    -- Rows of a source are together on the disk, too.
    order by f.source, f.start_position
    on conflict (loop_id) do nothing`;

/**
 * Keeps red_times by triggers, which see every change: loops that end, corrections, erased sessions, rebuilds. What a loop
 * changes lies between the good loop before it and the good one after it, so only that is written again.
 */
export function loopTriggers(): readonly string[] {
  return Object.entries(triggers).flatMap(([verb, { tables, changes }]) => [
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
            ${redsAround}$sql$, tg_table_schema);
        end if;
        return null;
      end $function$`,
    `create trigger colour_${verb} after ${verb} on finished_loops ${tables}
        for each statement execute function colour_${verb}_of_loops()`,
  ]);
}
