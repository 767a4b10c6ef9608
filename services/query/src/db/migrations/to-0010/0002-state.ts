import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The state of sessions: whole, for ReadState, and in rows, for SQL. */
export const state: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const ofSession = `
  session text not null,
  source text not null`;

const statements = [
  // JSON as text: SQL never reads into it, and jsonb refuses the NUL that an upstream's text may hold.
  `create table fold_states (${ofSession},
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
  `create table skaffold_artifacts (${ofSession},
    artifact text not null,
    status text not null,
    primary key (session, artifact)
  )`,
  `create table skaffold_phases (${ofSession},
    phase text not null,
    status text not null,
    status_code text not null,
    auto_trigger boolean,
    primary key (session, phase)
  )`,
  `create table skaffold_resources (${ofSession},
    resource text not null,
    status text not null,
    primary key (session, resource)
  )`,
  `create table skaffold_ports (${ofSession},
    local_port int not null,
    remote_port int not null,
    resource_type text not null,
    resource_name text not null,
    namespace text not null,
    pod text not null,
    container text not null,
    port_name text not null,
    address text not null,
    primary key (session, local_port)
  )`,
  `create table skaffold_debug_containers (${ofSession},
    -- Index in the upstream's list, which may hold the same container twice.
    place int not null,
    namespace text not null,
    pod text not null,
    container text not null,
    artifact text not null,
    runtime text not null,
    ports jsonb not null,
    primary key (session, place)
  )`,
];
