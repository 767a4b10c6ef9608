import { isTextKind } from "@tapedeck/shared/events/kinds";
import { insert, table } from "../../db/table.ts";
import type { View } from "../view.ts";
import { ensurePartitions } from "./partitions.ts";
import { eventRow } from "./row.ts";

const eventsTable = table("events", ["recorded_at", "workspace", "position"]);

/**
 * One row per fact. Mirrors have no rows, so that nothing counts twice. Text has rows only on request:
 * there is much of it, and the log has it.
 */
export function events(options: { readonly textRows: boolean }): View {
  return {
    // The name differs, so that switching text on or off rebuilds the tables.
    name: options.textRows ? "events+text" : "events",
    version: 1,
    sessionTables: ["events"],
    async apply(tx, batch) {
      const rows = batch
        .filter(({ event }) => event.kind !== "mirror.received" && (options.textRows || !isTextKind(event.kind)))
        .map(eventRow);
      if (rows.length === 0) return;
      await ensurePartitions(
        tx,
        rows.map(({ recorded_at }) => recorded_at),
      );
      await insert(tx, eventsTable, rows);
    },
  };
}
