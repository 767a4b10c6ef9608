import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** An index of the log: the positions of all events, including text and mirrors, by what filters name (FindEvents). */
export const eventPositions: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  // There are few of them: sources × kinds. A filter chooses groups first, so that it never reads what no event matches.
  `create table event_groups (
    -- A hash of source, kind and outcome.
    id bigint primary key,
    source text not null,
    workspace text not null,
    developer text not null,
    project text not null,
    upstream text not null,
    kind text not null,
    -- Empty: none.
    outcome text not null,
    first_position bigint not null,
    last_position bigint not null
  ) with (fillfactor = 70)`,
  `create index on event_groups (workspace, kind)`,
  `create index on event_groups (source)`,
  // The log in blocks of up to 512 events: where each begins, and how many events the last one has so far.
  `create table event_blocks (
    first_position bigint primary key,
    events int not null
  )`,
  `create table event_positions (
    event_group bigint not null,
    subject text not null,
    -- Where the block begins.
    block bigint not null,
    session text not null,
    -- The positions again, under the subject of the operation where the event has another one.
    alias boolean not null,
    first_position bigint not null,
    last_position bigint not null,
    -- Ascending, from the beginning of the block.
    distances int[] not null,
    primary key (event_group, subject, block, session, alias)
  ) with (fillfactor = 80)`,
  `create index on event_positions (event_group, block) where not alias`,
  `create index on event_positions (session, event_group, block)`,
  `create index on event_positions (subject, block) where subject <> ''`,
  `create index on event_positions (block) where not alias`,
];
