import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Since when nothing has been heard of a source that is lost. */
export const lost: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table sources add column not_heard_since timestamptz`.execute(db);
  },
};
