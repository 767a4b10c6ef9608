// Conditions on rows of `operations` that indexes and views share: Postgres takes an index only where they are the same.

/** The day of an operation, UTC. */
export const day = "(coalesce(started_at, ended_at) at time zone 'UTC')::date";

/** All builds can fail together before any begins. That failure is an operation without a subject, and no build of an artifact. */
export const isBuild = "kind = 'build' and upstream = 'skaffold' and subject <> ''";

/** A build that a client put into Skaffold's stream was done by nobody, so no count, duration or percentile has it. */
export const isOwnBuild = `${isBuild} and not injected`;

export const isFailedBuild = `${isBuild} and outcome = 'failed' and not cache_hit and not injected`;

/** A build of an artifact by a command that has no loops. */
export const isBuildOutsideLoops = "kind = 'build' and loop = 0 and subject <> '' and not injected";

/** A failed step in a loop or outside of loops. */
export const isFailedStep = "outcome = 'failed' and not injected and kind not in ('loop', 'job', 'pod')";

/** A loop in which a step failed, also one that went on and succeeded. */
export const isFailedLoop = "(outcome = 'failed' or failed_phase <> '')";

/** A session whose process ended with an exit code that says it failed. */
export const hasFailedCode = "exit_code <> 0 and end_position is not null";

/** One of `expired_builds` whose session was not imported again. */
export const isStillExpired = "not exists (select from sessions s where s.session = e.session)";
