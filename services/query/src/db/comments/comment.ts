/** An analyst's documentation of a relation: what a row is, and for each column its unit, definition and source. */
export type RelationComment = { readonly about: string; readonly columns: Readonly<Record<string, string>> };

/** Columns that mean the same wherever they are. */
export const common = {
  source: "Full name: workspace/developer/project/upstream.",
  workspace: "Workspace (team or company): part of the source's name.",
  developer: "Developer: part of the source's name.",
  project: "Project: part of the source's name.",
  upstream: "Recorded tool: skaffold, vagrant or rkt.",
  session: "Id (ULID) of the session: sessions.session.",
  runner: "Number of the configuration load in the session, from 1; 0 before the first, and of Vagrant and rkt.",
  loop: "Number of the dev loop in its runner, from 1; 0 outside of loops.",
  labels:
    "Labels (branch, commit, host, your own) of the loop when it began, else of the session: a JSON object of texts.",
  changed_labels:
    "Changed labels (branch, commit, dirty) and their new values; null: removed. Others are the session's.",
  start_position: "Position of the event that began it.",
  end_position: "Position of the event that ended it; null while it runs.",
  start_position_text: "start_position as the API takes it.",
  end_position_text: "end_position as the API takes it.",
  first_position: "Position of the first event about it.",
  last_position: "Position of the last event that changed the row.",
  started_at: "When it began, by the upstream's clock; null: not recorded.",
  started_ns: "Nanoseconds (0 to 999) to add to started_at.",
  ended_at: "When it ended, by the upstream's clock; null: running, or not recorded.",
  ended_ns: "Nanoseconds (0 to 999) to add to ended_at.",
  duration_ms:
    "Milliseconds from start to end, rounded down. Null: one is unknown, or both can't be right (before 2000, end over a minute before start, over 366 days except for pods and apps).",
  outcome: "succeeded, failed, canceled or unknown (end not observed); null while it runs.",
  error_code: "The upstream's error code, such as BUILD_USER_ERROR; empty: none.",
  error: "The upstream's error text, masked; empty: none.",
  cause: "The line of its output or error that says why it failed; empty: none known.",
  reason: "Class of the cause, such as compile error or timeout. cancelled: it was stopped, which is no cause.",
  cause_group: "reason and cause without numbers, ids, paths and hashes, for counting.",
  cause_file: "File that the cause names, as printed; empty: none.",
  cause_line: "Line in cause_file; null: none.",
  advice: "What the tool recommends; empty: none.",
  injected: "Whether a client put it into Skaffold's stream (Handle).",
  cache_hit: "Whether Skaffold's cache had the artifact.",
  platform: "Platforms of a build, such as linux/amd64; empty: not reported.",
  gone: "Whether the upstream no longer has it. The row stays.",
  gone_at: "When it was first missed; null while it exists.",
  message: "The upstream's last Protocol Buffers message, masked.",
} as const satisfies Readonly<Record<string, string>>;

/** The common columns of these names. */
export function shared(...names: readonly (keyof typeof common)[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, common[name]]));
}

/** Why something failed. */
export const causes = shared("cause", "reason", "cause_group", "cause_file", "cause_line", "advice");

export const ofSource = shared("source", "workspace", "developer", "project", "upstream");
