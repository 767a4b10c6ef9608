import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The stretches of the log that hold the events of a Vagrant job, and few other events of its channel. */
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
    -- The ordinal of the job's event at last_position.
    last_ordinal bigint not null,
    primary key (session, job, first_position)
  )`,
  `create index on vagrant_job_spans (source, job, first_position)`,
];
