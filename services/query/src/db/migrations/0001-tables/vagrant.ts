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

/** Vagrant's servers: their resources, including those that are gone, and their jobs. */
export const vagrantTables: readonly string[] = [
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
];

/** Every recorded version of the jobs, and where their events are. */
export const vagrantJobTables: readonly string[] = [
  `create table vagrant_job_versions (${ofSession},
    job text collate "C" not null,
    -- The message holds from this position on.
    position bigint not null,
    message bytea not null,
    primary key (session, position)
  )`,
  // Reads want the newest version of each job, in the order of the ids, which is the order of queueing.
  `create index on vagrant_job_versions (source, job, position desc)`,
  `create index on vagrant_job_versions (session, job, position desc)`,
  // The stretches of the log that hold the events of a job, and few other events of its channel.
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
