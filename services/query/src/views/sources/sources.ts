import type { SourceRow } from "../../db/schema.ts";
import { type Table, upsert } from "../../db/table.ts";
import type { View } from "../view.ts";
import { evolve } from "./evolve.ts";

const table: Table<SourceRow> = {
  name: "sources",
  key: ["source"],
  columns: {
    source: "text",
    workspace: "text",
    developer: "text",
    project: "text",
    upstream: "text",
    developer_name: "text",
    project_name: "text",
    status: "text",
    connected: "boolean",
    in_session: "boolean",
    not_heard_since: "timestamptz",
    gaps: "int",
    address: "text",
    first_position: "bigint",
    last_position: "bigint",
    last_event_at: "timestamptz",
    last_event_ns: "int",
  },
};

export const sources: View = {
  name: "sources",
  version: 2,
  sessionTables: [],
  async apply(tx, batch) {
    const names = [...new Set(batch.map(({ event }) => event.source))];
    const known = await tx.selectFrom("sources").selectAll().where("source", "in", names).execute();
    const rows = new Map(known.map((row) => [row.source, row]));
    for (const recorded of batch) rows.set(recorded.event.source, evolve(rows.get(recorded.event.source), recorded));
    await upsert(tx, table, [...rows.values()]);
  },
};
