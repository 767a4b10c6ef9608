import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Red times are rounded down, as all other durations are. The cast rounded them to the nearest millisecond. */
export const redTimes: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw(timeToGreen).execute(db);
    await sql.raw(asItsReader).execute(db);
  },
};

const timeToGreen = `create or replace view time_to_green as
  select f.source, f.workspace, f.developer, f.project, f.labels, f.session, f.id as loop_id,
    r.failed_at, r.green_at,
    floor(extract(epoch from r.green_at - r.failed_at) * 1000)::bigint as red_ms,
    f.failed_phase, f.failed_subject, f.error_code, f.error,
    tried.loops as loops_between, tried.errors as errors_between,
    r.green_loop_id, f.start_position, r.green_end_position as end_position,
    f.start_position_text, position_text(r.green_end_position) as end_position_text
  from red_times r join loop_times f on f.id = r.loop_id
  left join lateral (
    select count(*) as loops, coalesce(array_agg(b.error order by b.start_position), '{}') as errors
    from finished_loops b
    where b.source = r.source and b.start_position > r.start_position and b.outcome = 'failed'
      and b.start_position < coalesce(r.green_start_position, ${Number.MAX_SAFE_INTEGER})) tried on true`;

// To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
const asItsReader = `do $$ begin
  if current_setting('server_version_num')::int >= 150000 then
    alter view time_to_green set (security_invoker = true);
  end if;
end $$`;
