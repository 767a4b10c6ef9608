import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Where in the log the events of each of Vagrant's jobs stand. */
export const vagrantJobSpans: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  `create table vagrant_job_spans (
    session text not null,
    source text not null,
    job text collate "C" not null,
    first_position bigint not null,
    last_position bigint not null,
    last_ordinal bigint not null,
    primary key (session, job, first_position)
  )`,
  `create index on vagrant_job_spans (source, job, first_position)`,
];
