import { type RawBuilder, sql } from "kysely";

/**
 * Of a source, by this position: the session that was begun or gone on with last (a rkt host may come back to an earlier
 * data directory), running or ended; in a log that begins in its middle the newest one. Null: there is none.
 */
export function currentSession(source: RawBuilder<unknown>, at: number): RawBuilder<string | null> {
  return sql<string | null>`coalesce(
    (select begun.session from events as begun join sessions as known on known.session = begun.session
     where begun.source = ${source} and begun.channel = 'tapedeck' and begun.position <= ${at}
       and begun.kind in ('session.started', 'upstream.restored')
     order by begun.position desc limit 1),
    (select session from sessions where source = ${source} and start_position <= ${at}
     order by start_position desc limit 1))`;
}
