/** The events that could not be applied to the tables. Each is in the log, and in no other table here. */
export const setAsideTables: readonly string[] = [
  // It has the first and the last ones of each source; set_aside_sources counts all.
  `create table set_aside_events (
    workspace text not null,
    position bigint not null,
    source text not null,
    session text not null,
    kind text not null,
    -- The SQLSTATE of Postgres' answer, or the name of the error that was thrown while the rows were made.
    error_code text not null,
    error text not null,
    recorded_at timestamptz not null,
    set_aside_at timestamptz not null,
    primary key (workspace, position)
  )`,
  `create index on set_aside_events (source, position)`,
  `create table set_aside_sources (
    source text primary key,
    workspace text not null,
    -- How many events were set aside in all.
    events bigint not null,
    first_position bigint not null,
    last_position bigint not null,
    last_at timestamptz not null,
    -- Between these positions events were set aside that set_aside_events does not have. Null: it has all.
    unlisted_first_position bigint,
    unlisted_last_position bigint
  )`,
  `create index on set_aside_sources (workspace)`,
];
