import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Lets query notice a log that lost its end and has grown past the checkpoint since. */
export const checkpointMoment: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  // The last event that was applied; the checkpoint may lie behind it. Null: none was applied since this column exists.
  `alter table checkpoint add column applied_position bigint`,
  // The latest recording time of all applied events, by the log's clock, in ms since 1970.
  `alter table checkpoint add column recorded_until_ms bigint`,
];
