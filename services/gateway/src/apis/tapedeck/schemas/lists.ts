import { outcomeNames } from "@tapedeck/shared/events/names";
import { z } from "zod";
import { count, heardAt, named, position, sessionId, sourceName, text, time } from "./fields.ts";

export const source = z
  .object({
    source: sourceName,
    workspace: z.string(),
    developer: z.string(),
    project: z.string(),
    upstream: z.string(),
    status: z
      .enum(["recording", "waiting", "lost"])
      .describe(
        "`waiting`: for the upstream to begin. `lost`: the upstream, or the tap that records it, was lost in the middle of a session.",
      ),
    currentSession: sessionId.nullable().describe("The newest session, running or ended."),
    lastEventAt: time("When its last event occurred.").nullable(),
    lastPosition: position.describe("Position of its last event."),
    firstPosition: position.describe("Position of its first event."),
    developerName: text("As it was written, before it was made a valid name.", "Alice"),
    projectName: text("As it was written, before it was made a valid name.", "Shop"),
    address: text("Address at which the upstream was last dialled.", "127.0.0.1:50051"),
    gaps: count("Number of gaps, in which events may be missing."),
    notHeardSince: time(
      "When its upstream was last seen, for a lost source or where a list is late; otherwise null.",
    ).nullable(),
    heardAt,
    clockOffsetMs: z
      .int()
      .nullable()
      .describe(
        "How far the clock of its tap or upstream is ahead of the log's, in milliseconds; negative: behind, or its newest events were recorded late. Null: within a minute, or unknown.",
      ),
    lagMs: z
      .int()
      .nullable()
      .describe(
        "Age of the known state, in milliseconds. For a polled source: since the collection in `heardAt` that was seen longest ago. For a lost one: since it was last seen. Otherwise, and at a past time: from when its newest event happened until the log stored it; output does not count. Null: unknown.",
      ),
  })
  .describe("One recorded upstream.");

export const cause = z
  .object({
    text: text(
      "The line that says why, as it was printed. Empty: it was stopped, and nothing says more.",
      'error: no matches for kind "Deploymint" in version "apps/v1"',
    ),
    reason: text("A short class of causes. The list is open; `cancelled`: it was stopped.", "compile error"),
    group: text("Equal for causes of one kind: the reason and the text without numbers, ids, paths and hashes."),
    file: text("The file that the output names, as it does; null: none.", "src/room.ts").nullable(),
    line: z.int32().nullable().describe("The line in the file; null: none."),
    advice: text("What the tool recommends; null: nothing.").nullable(),
    phase: text("Of a loop: the kind of the step that failed first in it; otherwise empty.", "build"),
    subject: text("Of a loop: that step's subject; may be empty.", "web"),
    tries: count("Of a loop: how often that step failed in it. Skaffold tries a sync up to four times. Otherwise 1."),
  })
  .describe(
    "Why something failed, concluded from its output and its error when they are recorded. Output that is recorded later may change it: also in a list as of a position, it is what is known now.",
  );

export const session = z
  .object({
    session: sessionId,
    source: sourceName,
    labels: z.record(z.string(), z.string()).describe("For grouping: branch, commit, host and what the user adds."),
    startedAt: time("When it began.").nullable(),
    endedAt: time("When it ended; null while it runs, and when its end was not observed.").nullable(),
    endReason: text("Why it ended; null while it runs.", "process ended").nullable(),
    startPosition: position.describe("Position of session.started."),
    endPosition: position.describe("Position of its last event; of session.ended or session.lost when it has ended."),
    upstreamVersion: text("As the upstream reports it.", "v2.14.2"),
    gaps: count("Number of gaps, in which events may be missing."),
    exitCode: z
      .int32()
      .nullable()
      .describe(
        "Exit code of the upstream's process, else of the command of `tapedeck run` around it; null: unknown, or a signal ended it.",
      ),
    commandLine: text(
      "The command that `tapedeck run` recorded, without secrets. It may only have started Skaffold, such as `make`.",
      "skaffold build -p dev",
    ).nullable(),
    cause: cause.nullable().describe("Why its process failed; null: it did not, or nobody knows."),
  })
  .describe("One lifetime of the upstream behind a source.");

const labels = z.record(z.string(), z.string());

export const hit = z
  .object({
    place: z
      .enum(["cause", "output", "artifact", "label", "name"])
      .describe("`name`: a subject, an error or a command line. The list is open."),
    text: text("The line that has the text.", "src/room.ts(41,7): error TS2322"),
    step: text("For output: the kind of what printed it; otherwise, and in rows of all output, empty.", "build"),
    subject: text("For output: its subject; may be empty.", "web"),
    position: position.nullable().describe("For output: where that began, or the event of the output; otherwise null."),
  })
  .describe("The first line that has what was searched for.");

export const historyItem = z
  .object({
    kind: z.enum(["loop", "command", "job", "pod", "session"]),
    source: sourceName,
    session: sessionId,
    runner: count("Of a loop: its runner; otherwise 0."),
    loop: count("Of a loop: its number in the runner; otherwise 0."),
    subject: text(
      "The command, job or pod; of a session the command line in which it was recorded; may be empty.",
      "up",
    ),
    instance: text("Id of the job, or of the command's; otherwise empty."),
    startedAt: time("When it began; null when that was not observed.").nullable(),
    endedAt: time("When it ended; null while it runs, and when its end was not observed.").nullable(),
    durationMs: count("Milliseconds; null while it runs, and if its times are not known.").nullable(),
    outcome: named(outcomeNames).nullable().describe("Null while it runs. A session's is that of its exit code."),
    exitCode: z.int().nullable(),
    cause: cause.nullable().describe("Why it, or a step of the loop, failed; null: it did not, or nobody knows."),
    artifacts: z.array(z.string()).describe("What was built in it: of a session, outside of loops. 100 at most."),
    labels: labels.describe("When it began: branch, commit, host and what the user adds."),
    startPosition: position.describe("Position of the event that began it."),
    endPosition: position.nullable().describe("Position of the event that ended it; null while it runs."),
    hit: hit.optional().describe("Absent where nothing was searched for."),
  })
  .describe("A loop, command, job, pod or session.");

export const operation = z
  .object({
    id: z.string(),
    kind: text("`loop`, `build`, `test`, `deploy`, `pod`, `job` …", "build"),
    subject: text("What it is about: artifact, pod, job …; may be empty.", "web"),
    instance: text("Distinguishes operations of one subject that run at the same time; otherwise empty."),
    source: sourceName,
    session: sessionId,
    runner: count("Counts the runners (configuration loads) of the session; 0 before the first."),
    loop: count("Counts the dev loops of the runner; 0 outside of loops."),
    startedAt: time(
      "When it began; null when that was not observed, or by a clock that was never set (1970).",
    ).nullable(),
    endedAt: time("When it ended; null while it runs.").nullable(),
    durationMs: count(
      "Milliseconds; null while it runs, and if its times are not known or can't both be right.",
    ).nullable(),
    outcome: named(outcomeNames).nullable().describe("Null while it runs."),
    errorCode: text("The upstream's own code; empty without an error.", "BUILD_USER_ERROR"),
    error: text("The error's text; empty without an error."),
    cause: cause
      .nullable()
      .describe(
        "Why it failed, or a step of this loop; null: it did not, or nobody knows. A loop with a cause may have succeeded: Skaffold goes on after a failed sync.",
      ),
    exitCode: z.int().nullable().describe("Exit code of apps and commands that have ended, where it is known."),
    cacheHit: z.boolean(),
    platform: text("Platform of a build; otherwise empty.", "linux/amd64"),
    startPosition: position.describe("Position of the event that began it."),
    endPosition: position.nullable().describe("Position of the event that ended it; null while it runs."),
    labels: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        "Of a `loop`: the labels when it began, which are those of its session with what had changed (branch, commit, dirty).",
      ),
  })
  .describe("Something with a start and an end.");
