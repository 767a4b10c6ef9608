import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Tables of all upstreams. Their names are unqualified: the connection's search_path names the schema being built. */
export const tables: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const ofSource = `
  source text not null,
  workspace text not null,
  developer text not null,
  project text not null,
  upstream text not null`;

const statements = [
  `create table checkpoint (
    name text primary key,
    -- Versions of all views and folds that wrote the tables.
    projection text not null,
    epoch text not null,
    position bigint not null
  )`,
  `create table sources (${ofSource},
    developer_name text not null,
    project_name text not null,
    status text not null,
    -- Whether a tap is connected. The status follows from this and from in_session.
    connected boolean not null,
    -- Whether a session has begun and not ended.
    in_session boolean not null,
    -- Gaps that belong to no session.
    gaps int not null,
    address text not null,
    first_position bigint not null,
    last_position bigint not null,
    last_event_at timestamptz,
    last_event_ns int not null,
    primary key (source)
  )`,
  `create index on sources (workspace, first_position desc)`,
  `create table sessions (${ofSource},
    session text primary key,
    labels jsonb not null,
    upstream_version text not null,
    started_at timestamptz,
    started_ns int not null,
    ended_at timestamptz,
    ended_ns int not null,
    end_reason text not null,
    start_position bigint not null,
    last_position bigint not null,
    -- Position of session.ended or session.lost. Null while the session runs.
    end_position bigint,
    gaps int not null
  )`,
  `create index on sessions (source, start_position desc)`,
  `create index on sessions (workspace, start_position desc)`,
  `create index on sessions using gin (labels jsonb_path_ops)`,
  // The primary key must contain the partition key, hence recorded_at.
  `create table events (${ofSource},
    position bigint not null,
    recorded_at timestamptz not null,
    id text not null,
    session text not null,
    channel text not null,
    ordinal bigint not null,
    frame_ordinal bigint not null,
    part int not null,
    kind text not null,
    subject text not null,
    outcome text,
    error_code text not null,
    error text not null,
    summary text not null,
    occurred_at timestamptz,
    occurred_ns int not null,
    time_source text not null,
    not_before timestamptz,
    observed_at timestamptz,
    operation_kind text,
    operation_subject text,
    runner int,
    loop int,
    inferred boolean not null,
    injected boolean not null,
    redacted int not null,
    detail jsonb,
    original_type text,
    original_size bigint,
    primary key (recorded_at, position)
  ) partition by range (recorded_at)`,
  `create index on events (source, position)`,
  `create index on events (session, position)`,
  `create index on events (kind, occurred_at)`,
  // Lists of the past read the last event that Tapedeck itself recorded about a source or a session.
  `create index on events (source, position) where channel = 'tapedeck'`,
  `create index on events (session, position) where channel = 'tapedeck'`,
  `create table operations (${ofSource},
    -- Id of the event that began the operation, or of the only known event where no start was recorded.
    id text primary key,
    session text not null,
    runner int not null,
    loop int not null,
    kind text not null,
    subject text not null,
    started_at timestamptz,
    started_ns int not null,
    ended_at timestamptz,
    ended_ns int not null,
    duration_ms bigint,
    -- Null while the operation runs.
    outcome text,
    error_code text not null,
    error text not null,
    cache_hit boolean not null,
    -- A client put it into the upstream through Handle.
    injected boolean not null,
    -- Builds only: the target platform, or the host platform where no target is reported.
    platform text not null,
    -- Loops only: the upstream's own number.
    iteration int,
    start_position bigint not null,
    end_position bigint
  )`,
  `create index on operations (session, runner, loop, kind)`,
  `create index on operations (session) where outcome is null`,
  `create index on operations (workspace, start_position desc)`,
  `create index on operations (source, start_position desc)`,
  `create index on operations (kind, started_at)`,
  `create view loops as
    select source, workspace, developer, project, upstream, session, runner, loop, iteration, id,
      started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, injected,
      start_position, end_position
    from operations where kind = 'loop'`,
];
