const ofSource = `
    source text not null,
    workspace text not null,
    developer text not null,
    project text not null,
    upstream text not null`;

/** An index in which a substring is found. The module that has its operators is made by `migrate`, and may lie anywhere. */
const substrings = (name: string, table: string, column: string, where = "") => `
  do $do$ begin
    execute format($sql$create index ${name} on ${table} using gin (${column} %I.gin_trgm_ops) ${where}$sql$, (
      select nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where extname = 'pg_trgm'));
  end $do$`;

/** What can be searched for. Its sizes are bounded, and comparisons take no notice of the case of ASCII letters. */
export const historyTables: readonly string[] = [
  `create table history (${ofSource},
    session text not null,
    -- What of the session it is: "2.14" for a loop, "job …", "pod …"; empty: the session itself.
    unit text not null,
    kind text not null,
    -- Id of its operation; empty for a session.
    id text not null,
    runner int not null,
    loop int not null,
    -- When it began, by a clock that was not ahead of the log's.
    at timestamptz not null,
    -- When the event that began it was recorded.
    recorded_at timestamptz not null,
    -- Empty: it runs.
    outcome text not null,
    cause text not null,
    reason text not null,
    -- Cause, artifacts, labels and names, a line each.
    text text collate "C" not null,
    artifacts jsonb not null,
    labels jsonb not null,
    -- What filters ask for, such as "acme/outcome:failed".
    tags jsonb not null,
    start_position bigint not null,
    primary key (session, unit)
  )`,
  "create index history_newest on history (workspace, at desc, start_position desc, unit desc)",
  "create index history_of_source on history (source, at desc, start_position desc, unit desc)",
  "create index history_failed on history (session) where reason <> '' or outcome = 'failed'",
  "create index history_tags on history using gin (tags)",
  substrings("history_text", "history", "text"),
  // What explanations read: the output of each failed step, and of a session whose process failed.
  `create table failed_outputs (
    -- Id of the operation, or of the session.
    id text primary key,
    source text not null,
    session text not null,
    -- As in history.
    unit text not null,
    kind text not null,
    subject text not null,
    step_position bigint not null,
    -- When its end was recorded.
    recorded_at timestamptz not null,
    text text collate "C" not null
  )`,
  "create index on failed_outputs (session, unit)",
  "create index on failed_outputs (source)",
  substrings("failed_outputs_text", "failed_outputs", "text"),
];

/** Has entries only with query.textRows: other rows of text have no detail. */
export const textIndex = substrings(
  "events_text",
  "events",
  `((detail ->> 'text') collate "C")`,
  "where kind in ('log.written', 'terminal.written')",
);
