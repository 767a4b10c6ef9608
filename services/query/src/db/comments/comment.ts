/** An analyst's documentation of a relation: what a row is, and for each column its unit, definition and source. */
export type RelationComment = { readonly about: string; readonly columns: Readonly<Record<string, string>> };

/** Columns that mean the same wherever they are. */
export const common = {
  source: "Full name of the source: workspace/developer/project/upstream.",
  workspace: "Workspace (team or company) of the source.",
  developer: "Developer of the source, as it is in the source's name.",
  project: "Project of the source, as it is in the source's name.",
  upstream: "Recorded tool: skaffold, vagrant or rkt.",
  session: "Id of the session (ULID): one lifetime of the upstream. Refers to sessions.session.",
  runner: "Number of the configuration load in the session, from 1; 0 before the first. Vagrant and rkt: 0.",
  loop: "Number of the dev loop in its runner, from 1; 0 outside of loops.",
  labels: "Labels of the session (branch, commit, host, your own) as one JSON object of texts.",
  loop_labels:
    "Labels when the dev loop began: those of its session, with what had changed by then (branch, commit, dirty). One JSON object of texts.",
  changed_labels:
    "Labels (branch, commit, dirty) with their values from then on, as JSON; null: none of this name. Others are the session's.",
  start_position: "Position in the log of the event that began it. A number that grows with the log.",
  end_position: "Position in the log of the event that ended it; null while it runs.",
  start_position_text: "start_position as the API takes it (at=, after=).",
  end_position_text: "end_position as the API takes it (at=, after=).",
  first_position: "Position in the log of the first event about it.",
  last_position: "Position in the log of the last event that changed the row.",
  started_at: "When it began, by the upstream's clock; null when that was not recorded.",
  started_ns: "Nanoseconds (0 to 999) to add to started_at, which has microseconds.",
  ended_at: "When it ended, by the upstream's clock; null while it runs or when that was not recorded.",
  ended_ns: "Nanoseconds (0 to 999) to add to ended_at, which has microseconds.",
  duration_ms:
    "Milliseconds from its start to its end, rounded down. Null while either is unknown, and where both can't be right: a time before 2000, an end more than a minute before the start, over 366 days for anything but a pod or app.",
  outcome: "succeeded, failed, canceled or unknown (its end was not observed); null while it runs.",
  error_code: "The upstream's own error code, such as BUILD_USER_ERROR; empty without an error.",
  error: "The upstream's error text, with secrets masked; empty without an error.",
  injected: "Whether a client put it into Skaffold's stream (Handle), so that Skaffold did not do it.",
  cache_hit: "Whether Skaffold's cache had the artifact, so that nothing was built.",
  platform: "Platforms of a build, such as linux/amd64; empty where Skaffold does not report it.",
  gone: "Whether the upstream no longer has it. The row stays.",
  gone_at: "When the upstream was first observed without it; null while it exists.",
  message: "The upstream's own Protocol Buffers message, as last answered, with secrets masked.",
} as const satisfies Readonly<Record<string, string>>;

/** The common columns of these names. */
export function shared(...names: readonly (keyof typeof common)[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, common[name]]));
}

export const ofSource = shared("source", "workspace", "developer", "project", "upstream");
