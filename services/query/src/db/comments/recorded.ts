import { causes, ofSource, type RelationComment, shared } from "./comment.ts";

const operation = {
  ...ofSource,
  ...causes,
  ...shared("session", "runner", "loop", "started_at", "started_ns", "ended_at", "ended_ns", "duration_ms", "outcome"),
  ...shared("error_code", "error", "injected", "start_position", "end_position"),
  id: "Id of the operation, unique in the log.",
  iteration: "Skaffold's own number of the loop; null: none.",
};

/** Tables of what every upstream has. */
export const recordedComments: Readonly<Record<string, RelationComment>> = {
  workspaces: {
    about: "One row for each workspace that has a log.",
    columns: { ...shared("workspace"), epoch: "Names the log: part of its positions as the API takes them." },
  },
  sources: {
    about: "One row for each recorded upstream.",
    columns: {
      ...ofSource,
      ...shared("first_position", "last_position"),
      developer_name: "Name of the developer as it was entered.",
      project_name: "Name of the project as it was entered.",
      status: "recording, waiting (for the upstream to begin) or lost (in the middle of a session).",
      connected: "Whether a tap is connected to the upstream.",
      in_session: "Whether a session runs.",
      gaps: "Number of gaps, where events may be missing.",
      address: "Address of the upstream when it was last dialled.",
      last_event_at: "When the source's last event occurred.",
      last_event_ns: "Nanoseconds (0 to 999) to add to last_event_at.",
      not_heard_since: "For a lost source: when it was last seen; otherwise null.",
    },
  },
  sessions: {
    about: "One row for each lifetime of an upstream: a Skaffold process, a Vagrant server, a rkt data directory.",
    columns: {
      ...ofSource,
      ...shared("labels", "started_at", "started_ns", "ended_at", "ended_ns", "start_position", "last_position"),
      ...causes,
      session: "Id of the session (ULID).",
      upstream_version: "Version that the upstream reports; empty: none.",
      end_reason: "Why the session ended; empty while it runs.",
      end_position: "Position of the event that ended the session; null while it runs.",
      gaps: "Number of gaps, where events may be missing.",
      exit_code:
        "Exit code of the upstream's process, else of the command of `tapedeck run`; null: unknown, or a signal.",
      command_line:
        "The command of `tapedeck run`, masked; empty: none. end_reason has the exit code of a wrapper such as make.",
    },
  },
  events: {
    about: "One row for each fact in the log. Log and terminal text has rows only with query.textRows: true.",
    columns: {
      ...ofSource,
      ...shared("session", "runner", "loop", "error_code", "error", "injected"),
      position: "Position in the log of the workspace; the API takes tapedeck.position_text(position, workspace).",
      recorded_at: "When the log stored it, by the log's clock.",
      id: "Id of the event: session (or source), channel and ordinal.",
      channel: "Stream of the session: v1, v2, logs; jobs, resources; pods, images; tapedeck.",
      ordinal: "Number in its session and channel, from 1, without holes.",
      frame_ordinal: "Number of the upstream's message, in its session and channel.",
      part: "Number among the events of the same message, from 0.",
      kind: "Type of the event, noun.verb, such as build.succeeded.",
      subject: "Artifact, pod, job …; may be empty.",
      outcome: "succeeded, failed, canceled or unknown; empty where nothing ends.",
      summary: "One line about the event for people.",
      occurred_at: "When it happened, by the clock that time_source names.",
      occurred_ns: "Nanoseconds (0 to 999) to add to occurred_at.",
      time_source: "Source of occurred_at: the upstream's time, or the tap's observation.",
      not_before: "Earliest possible time, where only an interval is known; otherwise null.",
      observed_at: "When the tap received it, by the tap's clock.",
      operation_kind: "Kind of its operation; empty: none.",
      operation_subject: "Subject of its operation; may be empty.",
      inferred: "Whether Tapedeck derived it.",
      redacted: "Number of masked secrets.",
      detail: "Further content, by kind.",
      original_type: "Type of the upstream's message; empty if another event has it.",
      original_size: "Size of the upstream's message in bytes.",
    },
  },
  operations: {
    about: "One row for everything with a start and an end: loops, builds, tests, deploys, jobs, commands, pods, apps.",
    columns: {
      ...operation,
      ...shared("cache_hit", "platform"),
      kind: "loop, init, build, test, render, deploy, check, sync, exec …; job, command; pod, app.",
      subject: "Artifact, pod, job, command …; may be empty.",
      instance: "Distinguishes concurrent operations of one subject (a job's id); otherwise empty.",
      exit_code: "Exit code of an ended app or command; null: unknown.",
    },
  },
  loops: {
    about: "One row for each dev loop, running ones included: operations of kind loop.",
    columns: { ...operation, ...shared("start_position_text", "end_position_text"), ...shared("labels") },
  },
  set_aside_events: {
    about:
      "Events that could not be applied: they are in the log, and in no other table. A source has its first and last 100, and the first of each of up to 1,000 sessions.",
    columns: {
      ...shared("source", "workspace", "session"),
      position: "Position in the log of the workspace; the API takes tapedeck.position_text(position, workspace).",
      kind: "Type of the event, noun.verb, such as build.succeeded.",
      error_code: "SQLSTATE of Postgres, or the name of the error that making the rows threw.",
      error: "Why it could not be applied.",
      recorded_at: "When the log stored it, by the log's clock.",
      set_aside_at: "When it was tried. A rebuild tries again.",
    },
  },
  set_aside_sources: {
    about: "One row for each source with events that could not be applied to the tables.",
    columns: {
      ...shared("source", "workspace"),
      events: "Number of events set aside, without erased sessions; an upper bound if not all are listed.",
      first_position: "Position of the first of them.",
      last_position: "Position of the last of them.",
      last_at: "When the last of them was set aside.",
      unlisted_first_position: "Position of the first that set_aside_events omits; null: none.",
      unlisted_last_position: "Position of the last that set_aside_events omits; null: none.",
    },
  },
};
