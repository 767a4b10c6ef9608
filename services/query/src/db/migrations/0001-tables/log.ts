import { causeColumns } from "./causes.ts";
import { hasFailedCode } from "./conditions.ts";

const ofSource = `
  source text not null,
  workspace text not null,
  developer text not null,
  project text not null,
  upstream text not null`;

/** The log of each workspace. The epoch is that of the checkpoint, which readers may not see. */
export const workspaceTable = `create table workspaces (
    workspace text primary key,
    epoch text not null
  )`;

/** What the log holds: its sources, sessions and events. */
export const logTables: readonly string[] = [
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
    -- Since when a lost source has been silent. Kept until its next event, even after its session ends.
    not_heard_since timestamptz,
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
    gaps int not null,
    -- The exit code of the command in which the session was recorded.
    exit_code int,
    -- The command in which the session was recorded; empty: in none.
    command_line text not null default '',${causeColumns}
  )`,
  `create index on sessions (source, start_position desc)`,
  `create index on sessions (workspace, start_position desc)`,
  `create index on sessions using gin (labels jsonb_path_ops)`,
  // The condition is that of the view failures.
  `create index failed_sessions on sessions (ended_at) where ${hasFailedCode}`,
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
    primary key (recorded_at, workspace, position)
  ) partition by range (recorded_at)`,
  `create index on events (source, position)`,
  `create index on events (session, position)`,
  `create index on events (kind, occurred_at)`,
  // Lists of the past read the last event that Tapedeck itself recorded about a source or a session.
  `create index on events (source, position) where channel = 'tapedeck'`,
  `create index on events (session, position) where channel = 'tapedeck'`,
];

/** How far the tables of each workspace are, and an index of the positions of all events. */
export const positionTables: readonly string[] = [
  `create table checkpoint (
    workspace text primary key,
    -- Versions of all views and folds that wrote the tables.
    projection text not null,
    epoch text not null,
    position bigint not null,
    -- The last event that was applied; the checkpoint may lie behind it. Null: none was applied.
    applied_position bigint,
    -- The latest recording time of all applied events, by the log's clock, in ms since 1970.
    recorded_until_ms bigint,
    -- Its rows are being deleted.
    removed boolean not null default false
  )`,
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
  // Each log in blocks of up to 512 events: where each begins, and how many events the last one has so far.
  `create table event_blocks (
    workspace text not null,
    first_position bigint not null,
    events int not null,
    primary key (workspace, first_position)
  )`,
  `create table event_positions (
    workspace text not null,
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
  `create index on event_positions (workspace, subject, block) where subject <> ''`,
  `create index on event_positions (workspace, block) where not alias`,
];
