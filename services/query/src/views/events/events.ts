import type { EventRow } from "../../db/schema.ts";
import { insert, type Table } from "../../db/table.ts";
import type { View } from "../view.ts";
import { ensurePartitions } from "./partitions.ts";
import { eventRow } from "./row.ts";

const table: Table<EventRow> = {
  name: "events",
  key: ["recorded_at", "position"],
  columns: {
    source: "text",
    workspace: "text",
    developer: "text",
    project: "text",
    upstream: "text",
    position: "bigint",
    recorded_at: "timestamptz",
    id: "text",
    session: "text",
    channel: "text",
    ordinal: "bigint",
    frame_ordinal: "bigint",
    part: "int",
    kind: "text",
    subject: "text",
    outcome: "text",
    error_code: "text",
    error: "text",
    summary: "text",
    occurred_at: "timestamptz",
    occurred_ns: "int",
    time_source: "text",
    not_before: "timestamptz",
    observed_at: "timestamptz",
    operation_kind: "text",
    operation_subject: "text",
    runner: "int",
    loop: "int",
    inferred: "boolean",
    injected: "boolean",
    redacted: "int",
    detail: "jsonb",
    original_type: "text",
    original_size: "bigint",
  },
};

/**
 * One row per fact. Mirrors are left out, so that nothing counts twice; text (log.written) too unless it is asked for:
 * there is much of it, and the log has it.
 */
export function events(options: { readonly textRows: boolean }): View {
  return {
    // By another name, so that switching text on or off rebuilds the tables.
    name: options.textRows ? "events+text" : "events",
    version: 1,
    sessionTables: ["events"],
    async apply(tx, batch) {
      const rows = batch
        .filter(({ event }) => event.kind !== "mirror.received" && (options.textRows || !isText(event.kind)))
        .map(eventRow);
      if (rows.length === 0) return;
      await ensurePartitions(
        tx,
        rows.map(({ recorded_at }) => recorded_at),
      );
      await insert(tx, table, rows);
    },
  };
}

function isText(kind: string): boolean {
  return kind === "log.written" || kind === "terminal.written";
}
