import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Vagrant's servers: their resources, including those that are gone, and every recorded version of their jobs. */
export const vagrant: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const ofSession = `
  session text not null,
  source text not null`;

const ofResource = `${ofSession},
  -- The resource_id, or the id of a runner.
  id text not null,
  -- No longer on the server. Vagrant does not report that a runner went.
  gone boolean not null,
  gone_at timestamptz,
  -- Positions of the events that first reported the resource and that last changed the row.
  first_position bigint not null,
  last_position bigint not null,
  -- The upstream's answer, after masking.
  message bytea not null,
  primary key (session, id)`;

const statements = [
  // Distinguishes operations of one subject that run at the same time (for commands: the id of the job); else empty.
  `alter table operations add column instance text not null default ''`,
  // A session may have thousands of operations that differ only in their subject or instance.
  `drop index operations_session_runner_loop_kind_idx`,
  `create index on operations (session, runner, loop, kind, hashtext(subject), hashtext(instance))`,
  `create table vagrant_targets (${ofResource},
    name text not null,
    project_id text not null,
    project_name text not null,
    -- As the server names it: DESTROYED also for a machine that is powered off.
    state text not null,
    provider text not null,
    uuid text not null,
    -- From the target's record, which a server of v2.3.7 never replaces: the provider's id and state of the
    -- machine, and its box.
    machine_id text not null,
    machine_state text not null,
    box_name text not null,
    box_version text not null
  )`,
  `create table vagrant_projects (${ofResource},
    name text not null,
    path text not null,
    basis_id text not null,
    basis_name text not null,
    remote_enabled boolean not null
  )`,
  `create table vagrant_bases (${ofResource},
    name text not null,
    path text not null,
    remote_enabled boolean not null
  )`,
  `create table vagrant_boxes (${ofResource},
    name text not null,
    provider text not null,
    version text not null,
    directory text not null,
    metadata_url text not null
  )`,
  `create table vagrant_runners (${ofResource},
    -- Takes only jobs that name it: a command's own runner.
    by_id_only boolean not null,
    components jsonb not null
  )`,
  `create table vagrant_jobs (${ofSession},
    job text collate "C" not null,
    -- "command", "init" …; empty: unknown.
    operation text not null,
    -- For operation "command": "up", "box add", and the arguments the user gave, flags as "--name=value".
    command text not null,
    args jsonb not null,
    -- "basis", "project", "target" or empty, and its ref.
    scope text not null,
    scope_id text not null,
    scope_name text not null,
    -- Id of the runner that the job is for; empty: any.
    runner text not null,
    -- The last reported state, without a prefix. A job whose command failed is in state SUCCESS: see outcome.
    state text not null,
    -- A command that crashed or runs elsewhere left it behind.
    stale boolean not null,
    queued_at timestamptz,
    assigned_at timestamptz,
    started_at timestamptz,
    cancel_requested_at timestamptz,
    -- Null also for a job that was canceled before it began.
    completed_at timestamptz,
    expires_at timestamptz,
    -- Null until the job is over. "unknown": it was lost, has no result, or its session ended before it.
    outcome text,
    -- Commands only. Null for a failed command that reported 0, which means nothing.
    exit_code int,
    error_code text not null,
    error text not null,
    -- Positions of the first and the last event about the job, its output aside.
    first_position bigint not null,
    last_position bigint not null,
    -- hashicorp.vagrant.Job as last answered, after masking. Null: never answered whole.
    message bytea,
    primary key (session, job)
  )`,
  `create table vagrant_job_versions (${ofSession},
    job text collate "C" not null,
    -- The message holds from this position on.
    position bigint primary key,
    message bytea not null
  )`,
  // Reads want the newest version of each job, in the order of the ids, which is the order of queueing.
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
