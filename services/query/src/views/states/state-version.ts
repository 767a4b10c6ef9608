import { sql } from "kysely";

/** The identity of a row of fold_states: each write makes another. */
export const stateVersion = sql<string>`concat_ws(' ', tableoid, xmin, position)`;
