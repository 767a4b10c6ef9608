import type { SourceName } from "@tapedeck/shared/source";
import { Client } from "pg";

const tables = [
  "sources",
  "sessions",
  "events",
  "operations",
  "loops",
  "build_times",
  "skaffold_artifacts",
  "skaffold_phases",
  "skaffold_resources",
  "skaffold_ports",
  "skaffold_debug_containers",
] as const;

/** Columns with the time of observation or recording, or with a position in the log. */
const aside: Readonly<Record<string, readonly string[]>> = {
  "*": [
    ...["position", "start_position", "end_position", "first_position", "last_position"],
    ...["start_position_text", "end_position_text", "recorded_at", "observed_at"],
  ],
  // The end depends on Tapedeck's own last event.
  sources: ["last_event_at", "last_event_ns", "not_heard_since", "address"],
  sessions: ["started_at", "started_ns", "ended_at", "ended_ns"],
};

export type TableRows = Readonly<Record<string, readonly string[]>>;

/**
 * Returns the part of the tables that must be the same regardless of kills, for one source, as sorted texts. Sessions
 * are replaced by their number, and workspace and developer are left out; Tapedeck's own events (channel "tapedeck") are left out, and so are a channel that may
 * have gaps and columns that are `sampled`: "column" in all tables, "table.column" in one.
 */
export async function lastingTables(
  url: string,
  source: SourceName,
  { lossyChannel = "", sampled = [] }: { readonly lossyChannel?: string; readonly sampled?: readonly string[] } = {},
): Promise<TableRows> {
  const client = new Client(url);
  await client.connect();
  try {
    const { rows: sessions } = await client.query<{ session: string }>(
      "select session from tapedeck.sessions where source = $1 order by start_position",
      [source],
    );
    const found: Record<string, readonly string[]> = {};
    for (const table of tables) {
      const { rows } = await client.query<Record<string, unknown>>(
        table === "events"
          ? "select * from tapedeck.events where source = $1 and channel <> 'tapedeck' and channel <> $2"
          : `select * from tapedeck.${table} where source = $1 and $2 = $2`,
        [source, lossyChannel],
      );
      found[table] = rows.map((row) => lastingText(table, row, source, sessions, sampled)).sort();
    }
    return found;
  } finally {
    await client.end();
  }
}

function lastingText(
  table: string,
  row: Readonly<Record<string, unknown>>,
  source: string,
  sessions: readonly { readonly session: string }[],
  sampled: readonly string[],
): string {
  const ownSampled = sampled.flatMap((name) => (name.startsWith(`${table}.`) ? [name.slice(table.length + 1)] : []));
  const out = [...(aside["*"] ?? []), ...(aside[table] ?? []), ...sampled, ...ownSampled];
  const text = JSON.stringify(row, (name, value) => (out.includes(name) ? undefined : (value as unknown)));
  const [workspace = "", developer = ""] = source.split("/");
  return sessions
    .reduce((all, { session }, index) => all.replaceAll(session, `session ${index}`), text)
    .replaceAll(source, "the source")
    .replaceAll(`"${workspace}"`, '"the workspace"')
    .replaceAll(`"${developer}"`, '"the developer"');
}
