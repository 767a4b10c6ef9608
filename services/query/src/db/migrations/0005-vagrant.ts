import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Vagrant's servers: their things, also those that are gone, and their jobs in every version that was told. */
export const vagrant: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const ofSession = `
  session text not null,
  source text not null`;

const ofThing = `${ofSession},
  id text not null,
  gone boolean not null,
  gone_at timestamptz,
  first_position bigint not null,
  last_position bigint not null,
  message bytea not null,
  primary key (session, id)`;

const statements = [
  `alter table operations add column instance text not null default ''`,
  // A session may have thousands of operations that only their subject or instance tells apart.
  `drop index operations_session_runner_loop_kind_idx`,
  `create index on operations (session, runner, loop, kind, hashtext(subject), hashtext(instance))`,
  `create table vagrant_targets (${ofThing},
    name text not null,
    project_id text not null,
    project_name text not null,
    state text not null,
    provider text not null,
    uuid text not null,
    machine_id text not null,
    machine_state text not null,
    box_name text not null,
    box_version text not null
  )`,
  `create table vagrant_projects (${ofThing},
    name text not null,
    path text not null,
    basis_id text not null,
    basis_name text not null,
    remote_enabled boolean not null
  )`,
  `create table vagrant_bases (${ofThing},
    name text not null,
    path text not null,
    remote_enabled boolean not null
  )`,
  `create table vagrant_boxes (${ofThing},
    name text not null,
    provider text not null,
    version text not null,
    directory text not null,
    metadata_url text not null
  )`,
  `create table vagrant_runners (${ofThing},
    by_id_only boolean not null,
    components jsonb not null
  )`,
  `create table vagrant_jobs (${ofSession},
    job text collate "C" not null,
    operation text not null,
    command text not null,
    args jsonb not null,
    scope text not null,
    scope_id text not null,
    scope_name text not null,
    runner text not null,
    state text not null,
    stale boolean not null,
    queued_at timestamptz,
    assigned_at timestamptz,
    started_at timestamptz,
    cancel_requested_at timestamptz,
    completed_at timestamptz,
    expires_at timestamptz,
    outcome text,
    exit_code int,
    error_code text not null,
    error text not null,
    first_position bigint not null,
    last_position bigint not null,
    message bytea,
    primary key (session, job)
  )`,
  `create table vagrant_job_versions (${ofSession},
    job text collate "C" not null,
    position bigint primary key,
    message bytea not null
  )`,
  // Ids are in the order of queueing; of each the newest version is wanted.
  `create index on vagrant_job_versions (source, job, position desc)`,
  `create index on vagrant_job_versions (session, job, position desc)`,
  `create view command_times as
    select o.workspace, o.developer, o.project, o.source, s.labels, o.subject as command, o.instance as job, o.session,
      j.args, j.scope, j.scope_name, coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome,
      o.exit_code, o.error_code, o.error, s.upstream_version as vagrant_version, o.start_position
    from operations o join sessions s using (session)
      left join vagrant_jobs j on j.session = o.session and j.job = o.instance
    where o.kind = 'command' and o.upstream = 'vagrant'`,
];
