import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * The time since which a lost source has been silent. Kept until the source is heard from again, even after its session
 * ends.
 */
export const lost: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table sources add column not_heard_since timestamptz`.execute(db);
  },
};
