import { causeColumns } from "./causes.ts";
import { day, isBuild, isBuildOutsideLoops, isFailedBuild, isFailedStep } from "./conditions.ts";

/** Builds, loops, pods, commands: what has a start and an end. */
export const operationTables: readonly string[] = [
  `create table operations (
    source text not null,
    workspace text not null,
    developer text not null,
    project text not null,
    upstream text not null,
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
    end_position bigint,
    -- Apps and commands that have ended. Null where the code is unknown or means nothing.
    exit_code int,
    -- Distinguishes operations of one subject that run at the same time (for commands: the id of the job); else empty.
    instance text not null default '',${causeColumns}
  )`,
  // A session may have thousands of operations that differ only in their subject or instance.
  `create index on operations (session, runner, loop, kind, hashtext(subject), hashtext(instance))`,
  `create index on operations (session) where outcome is null`,
  `create index on operations (workspace, start_position desc)`,
  `create index on operations (kind, started_at)`,
  // ListOperations reads each combination of these from its newest operation on. '': still running.
  `create index operations_by_workspace on operations (workspace, kind, coalesce(outcome, ''), start_position)`,
  `create index operations_by_source on operations (source, kind, coalesce(outcome, ''), start_position)`,
  `create index operations_by_subject on operations (subject, start_position) where subject <> ''`,
  `create index operations_by_instance on operations (instance, start_position) where instance <> ''`,
  `create index operations_by_time on operations (workspace, coalesce(started_at, ended_at), start_position)`,
  // Holds all that is counted, so that a range of days is read from the index alone.
  `create index builds_by_day on operations ((${day}))
    include (workspace, developer, project, source, subject, started_at, ended_at, duration_ms, outcome, cache_hit, injected)
    where ${isBuild}`,
  `create index builds_by_developer on operations (developer, project) where ${isBuild}`,
  `create index builds_by_time on operations (coalesce(started_at, ended_at)) where ${isBuild}`,
  `create index failed_builds_by_day on operations ((${day})) where ${isFailedBuild}`,
  // The builds of an artifact that ran, in their order. Not by hashes: Postgres then expects one row, and sorts thousands.
  `create index builds_by_artifact on operations (session, runner, subject, loop, start_position) include (outcome)
    where kind = 'build' and not cache_hit and not injected and outcome in ('succeeded', 'failed')`,
  `create index failures_by_time on operations (coalesce(started_at, ended_at)) where outcome = 'failed'`,
  // A failure is dated by its end. The conditions are those of the view failures.
  `create index failures_by_end on operations (ended_at) where ${isFailedStep}`,
  `create index builds_outside_loops on operations (session, subject) where ${isBuildOutsideLoops}`,
  // The newest failures of a session, however many others it has.
  `create index failed_steps_by_end on operations (session, end_position) where ${isFailedStep}`,
  `create index failed_steps on operations (session, runner, loop, ended_at) where ${isFailedStep}`,
  "create index failed_jobs on operations (ended_at) where kind = 'job' and outcome = 'failed' and not injected",
  // The view command_times dates a command so.
  `create index commands_by_time on operations (coalesce(started_at, ended_at))
    where kind = 'command' and upstream = 'vagrant'`,
];
