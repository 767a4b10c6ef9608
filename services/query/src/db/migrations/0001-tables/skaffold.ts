const ofSession = `
  session text not null,
  source text not null`;

/** The state of Skaffold's sessions. */
export const skaffoldTables: readonly string[] = [
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
