import { common, ofSource, type RelationComment, shared } from "./comment.ts";

const phases = {
  sync_ms:
    "Milliseconds that the loop waited for file sync, from a try that failed to the next one, too. The seven *_ms of phases add up to duration_ms.",
  build_ms: "Milliseconds that the loop waited for builds: those on the critical path, not the sum of all builds.",
  test_ms: "Milliseconds that the loop waited for tests.",
  render_ms: "Milliseconds that the loop waited for rendering manifests.",
  deploy_ms: "Milliseconds that the loop waited for the deploy, its status check aside.",
  check_ms: "Milliseconds that the loop waited for the status check of what was deployed.",
  other_ms: "Milliseconds of the loop in which none of its phases ran.",
};
const shares = {
  sync_share:
    "sync_ms / duration_ms, 0 to 1; null where duration_ms is null or 0. The seven *_share add up to 1. For several loops, divide the sums instead.",
  build_share: "build_ms / duration_ms, 0 to 1: how much of its wait the loop waited for builds.",
  test_share: "test_ms / duration_ms, 0 to 1.",
  render_share: "render_ms / duration_ms, 0 to 1.",
  deploy_share: "deploy_ms / duration_ms, 0 to 1.",
  check_share: "check_ms / duration_ms, 0 to 1.",
  other_share: "other_ms / duration_ms, 0 to 1.",
};
const cause = {
  failed_phase:
    "Kind of the operation that failed first: init, build, test, deploy, check …; empty: none failed or none is known.",
  failed_subject:
    "Subject of the operation that failed first, such as the artifact; empty: the phase as a whole, or a phase that has none.",
  error_code: "Error code of what failed first; the loop's own where that says more than UNKNOWN_ERROR.",
  error: "Error text of what failed first, with secrets masked; the loop's own where it has none.",
};
const loop = {
  ...shared("source", "workspace", "developer", "project", "session", "runner", "loop"),
  ...cause,
  ...phases,
  id: "Id of the loop's operation. Refers to operations.id.",
  iteration: "Number that Skaffold itself gives the loop; null where it gives none.",
  started_at: "When Skaffold began the loop: when it noticed the change.",
  ended_at: "When the loop ended: deployed and, where the status check is on, checked; or failed.",
  duration_ms:
    "Milliseconds from started_at to ended_at, rounded down: how long the developer waited. Null: the end is not known.",
  outcome: "succeeded, failed, canceled, or unknown (its end was not observed).",
  builds: "Number of builds that ran in the loop.",
  cached: "Number of artifacts that the cache answered in the loop.",
  waits:
    "What the loop waited for at each moment: an array of {phase, subject, from_ms, to_ms}, milliseconds since started_at.",
  next_after_ms: "Milliseconds from the loop's end to the start of the next one of its runner; null: there is none.",
  start_position: common.start_position,
  end_position: "Position in the log of the event that ended the loop.",
};
const day = "Day (UTC) on which it began.";
const buildDay = {
  ...shared("workspace", "developer", "project"),
  artifact: "Name of the artifact (image) in skaffold.yaml.",
  day,
  builds: "Number of builds that ran: succeeded or failed, not cached, not injected.",
  failed: "Number of them that failed.",
  p50_ms: "Milliseconds: median of duration_ms of the builds that ran.",
  p90_ms: "Milliseconds: 90th percentile of duration_ms of the builds that ran.",
  p99_ms: "Milliseconds: 99th percentile of duration_ms of the builds that ran.",
  cached: "Number of builds that the cache answered; not in builds. None of the counts has injected builds.",
  canceled: "Number of canceled builds; not in builds.",
  unknown: "Number of builds whose end was not observed; not in builds.",
};

/** Waits and failures. */
export const innerLoopComments: Readonly<Record<string, RelationComment>> = {
  finished_loops: {
    about:
      "One row for each dev loop that is over: what was waited for, and what failed first. The base of loop_times.",
    columns: { ...loop, upstream: common.upstream },
  },
  red_times: {
    about: "One row for each time that a source went red. The base of time_to_green.",
    columns: {
      ...shared("source"),
      loop_id: "Id of the failed loop that began it. Refers to operations.id.",
      start_position: "Position in the log at which that loop began.",
      failed_at: "When that loop failed.",
      green_loop_id: "Id of the source's next good loop; null: there is none yet.",
      green_at: "When the good loop ended; null while red.",
      green_start_position: "Position in the log at which the good loop began; null while red.",
      green_end_position: "Position in the log at which the good loop ended; null while red.",
    },
  },
  session_labels: {
    about:
      "One row for each time that a session's labels changed, because a dev loop began on another branch or commit. sessions.labels stay those of its start.",
    columns: {
      ...shared("source", "session"),
      labels: common.changed_labels,
      at: "When the dev loop began from which on they hold, by the upstream's clock. Until the session's next row.",
      ns: "Nanoseconds (0 to 999) to add to at, which has microseconds.",
      position: "Position in the log of session.labelled, the event that recorded them.",
    },
  },
  loop_labels: {
    about: "One row for each dev loop, running or over, that began after its session's labels had changed.",
    columns: { ...shared("source", "session", "runner", "loop"), labels: common.changed_labels },
  },
  loop_times: {
    about: "One row for each dev loop that is over, from Skaffold's noticing the change until it was ready or failed.",
    columns: {
      ...loop,
      ...shares,
      ...shared("start_position_text", "end_position_text"),
      labels: common.loop_labels,
      ready_ms: "duration_ms of loops that succeeded; null for the others. Percentiles of the wait are made of this.",
      overtaken:
        "Whether the next change came before the loop was ready: the next loop began within 500 ms of its end, less than Skaffold's poll interval.",
    },
  },
  time_to_green: {
    about: "One row for each time that a source went red: from its first failed loop to the next good one.",
    columns: {
      ...shared("source", "workspace", "developer", "project", "session", "start_position_text", "end_position_text"),
      ...cause,
      labels: common.loop_labels,
      loop_id: "Id of the failed loop that began it. Refers to operations.id.",
      failed_at: "When that loop failed.",
      green_at: "When the next good loop of the source ended, also in a later session; null: there is none yet.",
      red_ms: "Whole milliseconds from failed_at to green_at; null while red, and where these can't both be right.",
      loops_between: "Number of failed loops between the first failed one and the good one: what was tried.",
      errors_between: "Error texts of those loops, in their order.",
      green_loop_id: "Id of the good loop; null while red.",
      start_position: "Position in the log at which the first failed loop began.",
      end_position: "Position in the log at which the good loop ended; null while red.",
    },
  },
  waiting_by_developer: {
    about:
      "One row for each developer, project and day: who waits how long. Combine days from loop_times, never from these percentiles.",
    columns: {
      ...shared("workspace", "developer", "project"),
      day,
      loops: "Number of loops that ended.",
      failed: "Number of them that failed.",
      overtaken: "Number of them during which the next change came.",
      waited_ms: "Milliseconds: sum of duration_ms of all loops, failed ones included.",
      ready_p50_ms: "Milliseconds: median of ready_ms.",
      ready_p90_ms: "Milliseconds: 90th percentile of ready_ms.",
    },
  },
  failures: {
    about:
      "One row for each cause of a failure: a failed loop's first failed operation; the first failed one of a loop whose end was not observed; and what failed outside of loops: commands and apps, and jobs of Vagrant in which no command failed, such as those that set up; and sessions without loops and commands in which nothing else failed but the exit code. Outside of loops a Skaffold step that ran when another one failed, or began less than 500 ms later, is a consequence and has no row.",
    columns: {
      ...ofSource,
      ...shared("session"),
      labels: "Labels when the loop began; outside of loops those of the session. One JSON object of texts.",
      failed_at: "When it failed, by the upstream's clock.",
      phase:
        "Kind of the operation that failed first: build, deploy, check, command, job, app …; session: only the exit code shows the failure; empty: not known.",
      subject:
        "Subject of that operation, such as the artifact or the command; of a job what it was to do (init, or its command). May be empty.",
      error_code: cause.error_code,
      error: cause.error,
      operation_id:
        "Id of the failed loop; otherwise of the failed operation itself; null for a session. Refers to operations.id.",
      position: "Position in the log of the event that ended it.",
      position_text: "position as the API takes it (at=, after=).",
    },
  },
  build_times: {
    about:
      "One row for each build of an artifact by Skaffold. A failure of all builds before any began is none: see failures.",
    columns: {
      ...shared("workspace", "developer", "project", "source", "session", "runner", "loop", "duration_ms"),
      ...shared("outcome", "cache_hit", "error_code", "error", "platform", "injected"),
      ...shared("start_position", "start_position_text"),
      labels:
        "Labels when the build's dev loop began; outside of loops those of the session. One JSON object of texts.",
      artifact: "Name of the artifact (image) in skaffold.yaml.",
      started_at: "When the build began; when it ended where its start was not recorded.",
      skaffold_version: "Version of Skaffold, as it reports it.",
    },
  },
  build_times_daily: {
    about:
      "One row for each developer, project, artifact and day. Percentiles are exact, and cover builds that ran: succeeded or failed, not cached, not injected.",
    columns: { ...buildDay, failure_rate: "failed / builds, 0 to 1; null without builds." },
  },
  build_days: {
    about:
      "The rows of build_times_daily, kept for the days whose builds have not changed since: usually all days before today. Ask build_times_daily, which has the other days, too.",
    columns: buildDay,
  },
  changed_build_days: {
    about:
      "One row for each day with builds that build_days does not have: today, and days that changed a short time ago. build_times_daily counts their builds when it is asked.",
    columns: { ...shared("workspace"), day: "Day (UTC)." },
  },
  slowest_artifacts: {
    about:
      "One row for each artifact of a project and day. Percentiles are exact, and cover builds that ran (succeeded or failed, not cached, not injected), of all developers.",
    columns: {
      ...shared("workspace", "project"),
      artifact: "Name of the artifact (image) in skaffold.yaml.",
      day,
      builds: "Number of builds that ran: succeeded or failed, not cached, not injected.",
      developers: "Number of developers that built it.",
      p50_ms: "Milliseconds: median of duration_ms of the builds that ran.",
      p90_ms: "Milliseconds: 90th percentile of duration_ms of the builds that ran.",
      built_ms: "Milliseconds: sum of duration_ms of the builds that ran.",
    },
  },
  flaky_artifacts: {
    about:
      "One row for each artifact of a project and day with a flake: a build that failed although the artifact's next build in the same session, with the same configuration, succeeded. Edits are not recorded, so a repaired file counts too: flakes of several developers are the better sign.",
    columns: {
      ...shared("workspace", "project"),
      artifact: "Name of the artifact (image) in skaffold.yaml.",
      day,
      builds: "Number of builds that ran: succeeded or failed, not cached, not injected.",
      failed: "Number of them that failed.",
      flakes: "Number of failed builds that are flakes.",
      flake_rate: "flakes / builds, 0 to 1.",
      developers: "Number of developers with a flake.",
    },
  },
};
