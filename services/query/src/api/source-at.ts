import type { Offset } from "@tapedeck/shared/log/offset";
import { type RawBuilder, sql } from "kysely";

/**
 * The status of a source at a position, read from the events: a row of `status`, and of `not_heard_since` if the source
 * was lost. `source` is the column or text that names it.
 */
export function sourceAt(source: RawBuilder<unknown>, at: Offset): RawBuilder<unknown> {
  const own = sql`source = ${source} and channel = 'tapedeck' and position <= ${at}`;
  return sql`
    select how.status, case when how.status = 'lost' then since.moment end as not_heard_since
    from (select 1) as one
    left join lateral (
      select kind, position from events where ${own} and kind in ('upstream.connected', 'upstream.restored')
      order by position desc limit 1) as heard on true
    left join lateral (
      select coalesce(not_before, occurred_at, recorded_at) as moment from events
      where ${own} and position > coalesce(heard.position, 0) and (kind = 'session.lost' or ${lostUpstream})
      order by position limit 1) as since on true
    left join lateral (
      select kind from events where ${own} and session <> ''
        and kind in ('session.started', 'upstream.restored', 'session.ended', 'session.lost')
      order by position desc limit 1) as life on true
    left join lateral (
      select case
        when heard.kind is not null and since.moment is null then 'recording'
        when life.kind in ('session.started', 'upstream.restored', 'session.lost') then 'lost'
        else 'waiting'
      end as status) as how on true`;
}

/** The whole connection: a single stream of it may break while the others continue. */
const lostUpstream = sql`kind = 'upstream.lost' and coalesce(detail ->> 'channel', '') = ''`;
