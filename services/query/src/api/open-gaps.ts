import { sql } from "kysely";

/** Over events: how many gaps were told and not filled since. */
export const openGaps = sql`(count(*) filter (where kind = 'session.gap')
  - count(*) filter (where kind = 'session.gap_filled'))`;
