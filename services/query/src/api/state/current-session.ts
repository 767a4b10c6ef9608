import type { Offset } from "@tapedeck/shared/log/offset";
import { type RawBuilder, sql } from "kysely";

/**
 * The session of a source that last began or was resumed by this position, running or ended. A rkt host may return to an
 * earlier data directory and so resume an earlier session. In a log whose beginning was removed it is the newest session.
 * Null: the source has none.
 */
export function currentSession(source: RawBuilder<unknown>, at: Offset): RawBuilder<string | null> {
  return sql<string | null>`coalesce(
    (select begun.session from events as begun join sessions as known on known.session = begun.session
     where begun.source = ${source} and begun.channel = 'tapedeck' and begun.position <= ${at}
       and begun.kind in ('session.started', 'upstream.restored')
     order by begun.position desc limit 1),
    (select session from sessions where source = ${source} and start_position <= ${at}
     order by start_position desc limit 1))`;
}
