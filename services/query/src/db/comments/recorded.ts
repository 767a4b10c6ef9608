import { common, ofSource, type RelationComment, shared } from "./comment.ts";

const operation = {
  ...ofSource,
  ...shared("session", "runner", "loop", "started_at", "started_ns", "ended_at", "ended_ns", "duration_ms", "outcome"),
  ...shared("error_code", "error", "injected", "start_position", "end_position"),
  id: "Id of the operation, unique in the log.",
  iteration: "Number that Skaffold itself gives the loop; null where it gives none.",
};

/** Tables of what every upstream has. */
export const recordedComments: Readonly<Record<string, RelationComment>> = {
  sources: {
    about: "One row for each recorded upstream. Made of all events of the source.",
    columns: {
      ...ofSource,
      ...shared("first_position", "last_position"),
      developer_name: "Name of the developer as it was given, before it was made fit for a source's name.",
      project_name: "Name of the project as it was given, before it was made fit for a source's name.",
      status: "recording, waiting (for the upstream to begin) or lost (in the middle of a session).",
      connected: "Whether a tap is connected to the upstream.",
      in_session: "Whether a session runs.",
      gaps: "How often events of the source may be missing.",
      address: "Address of the upstream as it was dialled last.",
      last_event_at: "When the source's last event occurred.",
      last_event_ns: "Nanoseconds (0 to 999) to add to last_event_at.",
      not_heard_since: "For a lost source: when it was last heard; otherwise null.",
    },
  },
  sessions: {
    about: "One row for each lifetime of an upstream: a Skaffold process, a Vagrant server, a rkt data directory.",
    columns: {
      ...ofSource,
      ...shared("labels", "started_at", "started_ns", "ended_at", "ended_ns", "start_position", "last_position"),
      session: "Id of the session (ULID).",
      upstream_version: "Version of the upstream, as it reports it; empty: it does not.",
      end_reason: "Why the session ended; empty while it runs.",
      end_position: "Position in the log of the event that ended the session; null while it runs.",
      gaps: "How often events of the session may be missing.",
      exit_code:
        "Exit code of the upstream's process, else of the command of `tapedeck run` around it; null: unknown, or a signal ended it.",
      command_line:
        "The command that `tapedeck run` recorded, without secrets; empty: none. One that only started Skaffold, such as make, gives no exit_code; end_reason has its own.",
    },
  },
  events: {
    about: "One row for each fact in the log. Log and terminal text has rows only with query.textRows: true.",
    columns: {
      ...ofSource,
      ...shared("session", "runner", "loop", "error_code", "error", "injected"),
      position: "Position of the event in the log. tapedeck.position_text writes it as the API takes it.",
      recorded_at: "When the log stored it, by the log's clock.",
      id: "Id of the event: session (or source), channel and ordinal.",
      channel: "Stream of the session that it came on: v1, v2, logs; jobs, resources; pods, images; tapedeck.",
      ordinal: "Number of the event in its session and channel, from 1, without holes.",
      frame_ordinal: "Number of the upstream's message in its session and channel that it was made from.",
      part: "Number of the event among those made from the same message, from 0.",
      kind: "Type of the event, noun.verb, such as build.succeeded.",
      subject: "What it is about: artifact, pod, job …; may be empty.",
      outcome: "succeeded, failed, canceled or unknown; empty where nothing ends.",
      summary: "One line about the event for people.",
      occurred_at: "When it happened; its time_source says by whose clock.",
      occurred_ns: "Nanoseconds (0 to 999) to add to occurred_at.",
      time_source: "Where occurred_at comes from: the upstream's time, or the tap's observation.",
      not_before: "Earliest time at which it can have happened, where only an interval is known; otherwise null.",
      observed_at: "When the tap received it, by the tap's clock.",
      operation_kind: "Kind of the operation that it belongs to; empty: none.",
      operation_subject: "Subject of the operation that it belongs to; may be empty.",
      inferred: "Whether Tapedeck derived it and the upstream did not report it.",
      redacted: "How many secrets were masked in it.",
      detail: "What else it says, as JSON; its form depends on the kind.",
      original_type: "Type of the upstream's message that it was made from; empty when another event has it.",
      original_size: "Bytes of the upstream's message that it was made from.",
    },
  },
  operations: {
    about: "One row for whatever has a start and an end: loops, builds, tests, deploys, jobs, commands, pods, apps.",
    columns: {
      ...operation,
      ...shared("cache_hit", "platform"),
      kind: "loop, init, build, test, render, deploy, check, sync, exec …; job, command; pod, app.",
      subject: "What it is about: artifact, pod, job, command …; may be empty.",
      instance: "Distinguishes operations of one subject that run at the same time (the job's id); otherwise empty.",
      exit_code: "Exit code of an app or command that has ended; null where it is unknown.",
    },
  },
  loops: {
    about: "One row for each dev loop of Skaffold, running ones included: the operations of kind loop.",
    columns: { ...operation, ...shared("start_position_text", "end_position_text"), labels: common.loop_labels },
  },
  set_aside_events: {
    about:
      "Events that could not be applied to the tables. They are in the log, and count in no other table. Of each source the first 100 and the last 100, and the first of each session, of 1,000 at most.",
    columns: {
      ...shared("source", "workspace", "session"),
      position: "Position of the event in the log. tapedeck.position_text writes it as the API takes it.",
      kind: "Type of the event, noun.verb, such as build.succeeded.",
      error_code:
        "SQLSTATE of what Postgres answered, or the name of the error that was thrown while the rows were made.",
      error: "Why it could not be applied.",
      recorded_at: "When the log stored it, by the log's clock.",
      set_aside_at: "When these tables were tried, by query's clock. A rebuild tries every event again.",
    },
  },
  set_aside_sources: {
    about: "One row for each source with events that could not be applied to the tables.",
    columns: {
      ...shared("source", "workspace"),
      events:
        "How many events were set aside, without those of erased sessions; where not all are listed, at most so many.",
      first_position: "Position in the log of the first of them.",
      last_position: "Position in the log of the last of them.",
      last_at: "When the last of them was set aside, by query's clock.",
      unlisted_first_position: "Position of the first one that set_aside_events does not list; null: it lists all.",
      unlisted_last_position: "Position of the last one that set_aside_events does not list; null: it lists all.",
    },
  },
};
