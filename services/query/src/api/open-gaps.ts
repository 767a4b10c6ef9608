import { sql } from "kysely";

/** An aggregate over events: the gaps that were recorded and not filled since. */
export const openGaps = sql`(count(*) filter (where kind = 'session.gap')
  - count(*) filter (where kind = 'session.gap_filled'))`;
