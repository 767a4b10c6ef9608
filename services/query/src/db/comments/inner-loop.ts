import { causes, common, ofSource, type RelationComment, shared } from "./comment.ts";

const phases = {
  sync_ms: "Wait for file sync, including the time between failed tries. The seven *_ms add up to duration_ms.",
  build_ms: "Wait for builds on the critical path, not their sum.",
  test_ms: "Wait for tests.",
  render_ms: "Wait for rendering.",
  deploy_ms: "Wait for the deploy, without its status check.",
  check_ms: "Wait for the status check.",
  other_ms: "Time in which no phase ran.",
};
const shares = {
  sync_share: "sync_ms / duration_ms, 0 to 1; null where that is null or 0. For several loops, divide the sums.",
  build_share: "build_ms / duration_ms.",
  test_share: "test_ms / duration_ms.",
  render_share: "render_ms / duration_ms.",
  deploy_share: "deploy_ms / duration_ms.",
  check_share: "check_ms / duration_ms.",
  other_share: "other_ms / duration_ms.",
};
const cause = {
  ...causes,
  failed_phase:
    "Kind of what failed first: init, build, test, deploy, check …; empty: none known. Set for a failed sync even if the loop succeeded.",
  failed_subject: "Subject of what failed first, such as an artifact; empty: the whole phase.",
  error_code: "Error code of what failed first; the loop's where that says more than UNKNOWN_ERROR.",
  error: "Error text of what failed first, masked; the loop's where it has none.",
};
const causeAsInLoops = { ...cause, error_code: "See finished_loops.", error: "See finished_loops." };
const loop = {
  ...shared("source", "workspace", "developer", "project", "session", "runner", "loop"),
  ...cause,
  ...phases,
  id: "Id of the loop: operations.id.",
  iteration: "Skaffold's own number of the loop; null: none.",
  started_at: "When Skaffold noticed the change.",
  ended_at: "When the loop was deployed (and checked, if the status check is on) or failed.",
  duration_ms: "Milliseconds from started_at to ended_at: the developer's wait. Null: end not known.",
  outcome: "succeeded, failed, canceled or unknown (end not observed).",
  builds: "Number of builds that ran.",
  cached: "Number of artifacts from the cache.",
  waits: "What the loop waited for, in order: an array of {phase, subject, from_ms, to_ms}, since started_at.",
  next_after_ms: "Milliseconds from its end to the runner's next loop; null: none.",
  start_position: common.start_position,
  end_position: "Position of the event that ended the loop.",
};
const day = "Day (UTC) on which it began.";
const buildDay = {
  ...shared("workspace", "developer", "project"),
  artifact: "Name of the artifact (image) in skaffold.yaml.",
  day,
  builds: "Number of builds that ran: not cached, not injected, and succeeded or failed.",
  failed: "Number of them that failed.",
  p50_ms: "Median of their duration_ms.",
  p90_ms: "90th percentile of their duration_ms.",
  p99_ms: "99th percentile of their duration_ms.",
  cached: "Number of artifacts from the cache; not in builds. No count has injected builds.",
  canceled: "Number of canceled builds; not in builds.",
  unknown: "Number of builds without an observed end; not in builds.",
};

/** Waits and failures. */
export const innerLoopComments: Readonly<Record<string, RelationComment>> = {
  finished_loops: {
    about: "One row for each finished dev loop. The base of loop_times.",
    columns: { ...loop, upstream: common.upstream },
  },
  red_times: {
    about: "One row for each time that a source went red. The base of time_to_green.",
    columns: {
      ...shared("source"),
      loop_id: "Id of its first failed loop: operations.id.",
      start_position: "Position at which that loop began.",
      failed_at: "When that loop failed.",
      green_loop_id: "Id of the next good loop; null while red.",
      green_at: "When the good loop ended; null while red.",
      green_start_position: "Position at which the good loop began; null while red.",
      green_end_position: "Position at which the good loop ended; null while red.",
    },
  },
  session_labels: {
    about: "One row for each time that a session's labels changed: a dev loop began on another branch or commit.",
    columns: {
      ...shared("source", "session"),
      labels: common.changed_labels,
      at: "From when on they hold: the start of a dev loop, by the upstream's clock.",
      ns: "Nanoseconds (0 to 999) to add to at.",
      position: "Position of the event session.labelled.",
    },
  },
  loop_labels: {
    about: "One row for each dev loop that began after its session's labels had changed.",
    columns: { ...shared("source", "session", "runner", "loop"), labels: "See session_labels." },
  },
  loop_times: {
    about:
      "One row for each finished dev loop, from the change until it was ready or failed. All *_ms are milliseconds.",
    columns: {
      ...loop,
      ...shares,
      ...shared("start_position_text", "end_position_text"),
      ...shared("labels"),
      ready_ms: "duration_ms of loops that succeeded; otherwise null. Use it for percentiles.",
      overtaken: "Whether the next loop began within 500 ms of its end.",
    },
  },
  time_to_green: {
    about: "One row for each time that a source went red: from its first failed loop to the next good one.",
    columns: {
      ...shared("source", "workspace", "developer", "project", "session", "start_position_text", "end_position_text"),
      ...causeAsInLoops,
      ...shared("labels"),
      loop_id: "Id of its first failed loop: operations.id.",
      failed_at: "When that loop failed.",
      green_at: "When the source's next good loop ended, also in a later session; null while red.",
      red_ms: "Milliseconds from failed_at to green_at; null while red, and where both can't be right.",
      loops_between: "Number of failed loops in between.",
      errors_between: "Error texts of those loops, in order.",
      green_loop_id: "Id of the good loop; null while red.",
      start_position: "Position at which the first failed loop began.",
      end_position: "Position at which the good loop ended; null while red.",
    },
  },
  waiting_by_developer: {
    about:
      "One row for each developer, project and day. For longer times use loop_times: percentiles can't be combined.",
    columns: {
      ...shared("workspace", "developer", "project"),
      day,
      loops: "Number of loops that ended.",
      failed: "Number of them that failed.",
      overtaken: "Number of them that were overtaken.",
      waited_ms: "Sum of duration_ms of all loops, failed ones included.",
      ready_p50_ms: "Median of ready_ms.",
      ready_p90_ms: "90th percentile of ready_ms.",
    },
  },
  failures: {
    about:
      "One row for each cause of a failure: what failed first in a loop, even if the loop succeeded; outside of loops, failed steps, commands, apps, Vagrant jobs without a failed command, and sessions with only a failed exit code. A step outside of loops that ran when another one failed, or began less than 500 ms later, is a consequence and has no row.",
    columns: {
      ...ofSource,
      ...shared("session"),
      ...shared("labels"),
      failed_at: "When it failed, by the upstream's clock.",
      phase:
        "Kind of what failed first: build, deploy, check, command, job, app …; session: only the exit code; empty: not known.",
      subject: "Its subject, such as an artifact; of a job its operation or command. May be empty.",
      error_code: causeAsInLoops.error_code,
      error: causeAsInLoops.error,
      ...causes,
      operation_id: "Id of the failed loop, else of the failed operation: operations.id; null for a session.",
      position: "Position of the event that ended it.",
      position_text: "position as the API takes it.",
    },
  },
  build_times: {
    about: "One row for each build of an artifact. A failure before any build began has none: see failures.",
    columns: {
      ...shared("workspace", "developer", "project", "source", "session", "runner", "loop", "duration_ms"),
      ...shared("outcome", "cache_hit", "error_code", "error", "platform", "injected"),
      ...shared("start_position", "start_position_text"),
      ...shared("labels"),
      artifact: "Name of the artifact (image) in skaffold.yaml.",
      started_at: "When it began; if that was not recorded, when it ended.",
      skaffold_version: "Version that Skaffold reports.",
    },
  },
  build_times_daily: {
    about:
      "One row for each developer, project, artifact and day, with exact percentiles of the builds that ran. Rows whose developer is empty count the builds of sessions that expired (`retention.facts`); their percentiles are up to 1 % off.",
    columns: { ...buildDay, failure_rate: "failed / builds, 0 to 1; null without builds." },
  },
  build_days: {
    about:
      "Stored rows of build_times_daily, for days that no longer change. Query build_times_daily, which has all days.",
    columns: {
      ...buildDay,
      ...Object.fromEntries(
        ["builds", "failed", "cached", "canceled", "unknown"].map((name) => [name, "See build_times_daily."]),
      ),
    },
  },
  changed_build_days: {
    about:
      "One row for each day that build_days lacks: today, and days that changed recently. build_times_daily counts them when it is read.",
    columns: { ...shared("workspace"), day: "Day (UTC)." },
  },
  expired_builds: {
    about:
      "Counts of the builds of sessions that were older than their workspace keeps facts. Query build_times_daily, which has them in rows without a developer.",
    columns: {
      ...shared("workspace", "project"),
      session: "The session that expired. One that was imported again is not counted here.",
      artifact: "Name of the artifact (image) in skaffold.yaml.",
      day: "Day (UTC); -infinity: without a time.",
      bucket:
        "Range of the duration: each ends at 1.02 times its begin; -1: the build did not run, or its duration is not known.",
      ...Object.fromEntries(
        ["builds", "failed", "cached", "canceled", "unknown"].map((name) => [name, "See build_times_daily."]),
      ),
    },
  },
  slowest_artifacts: {
    about: "One row for each artifact of a project and day, with exact percentiles of all developers' builds that ran.",
    columns: {
      ...shared("workspace", "project"),
      artifact: "Name of the artifact (image) in skaffold.yaml.",
      day,
      builds: "Number of builds that ran: not cached, not injected, and succeeded or failed.",
      developers: "Number of developers that built it.",
      p50_ms: "Median of their duration_ms.",
      p90_ms: "90th percentile of their duration_ms.",
      built_ms: "Sum of their duration_ms.",
    },
  },
  flaky_artifacts: {
    about:
      "One row for each artifact of a project and day with a flake: a failed build whose next one, in the same session and configuration, succeeded. A repaired file counts too.",
    columns: {
      ...shared("workspace", "project"),
      artifact: "Name of the artifact (image) in skaffold.yaml.",
      day,
      builds: "Number of builds that ran: not cached, not injected, and succeeded or failed.",
      failed: "Number of them that failed.",
      flakes: "Number of flakes.",
      flake_rate: "flakes / builds, 0 to 1.",
      developers: "Number of developers with a flake.",
    },
  },
};
