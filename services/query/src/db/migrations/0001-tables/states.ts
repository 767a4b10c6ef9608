/** The state of sessions: whole, for ReadState. Rows for SQL are in the tables of each upstream. */
export const stateTables: readonly string[] = [
  // JSON as text: SQL never reads into it, and jsonb refuses the NUL that an upstream's text may hold.
  `create table fold_states (
    session text not null,
    source text not null,
    fold_version int not null,
    -- The last event that could change the state.
    position bigint not null,
    state text not null,
    events_since_snapshot int not null,
    bytes_since_snapshot bigint not null,
    primary key (session)
  )`,
  `create table snapshots (
    session text not null,
    fold_version int not null,
    position bigint not null,
    state text not null,
    primary key (session, position)
  )`,
];
