import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** By what query notices a log that has lost its end and has grown past the checkpoint since. */
export const checkpointMoment: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  `alter table checkpoint add column applied_position bigint`,
  `alter table checkpoint add column recorded_until_ms bigint`,
];
