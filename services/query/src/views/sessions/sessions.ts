import type { SessionRow } from "../../db/schema.ts";
import { type Table, upsert } from "../../db/table.ts";
import type { View } from "../view.ts";
import { evolve } from "./evolve.ts";

const table: Table<SessionRow> = {
  name: "sessions",
  key: ["session"],
  columns: {
    session: "text",
    source: "text",
    workspace: "text",
    developer: "text",
    project: "text",
    upstream: "text",
    labels: "jsonb",
    upstream_version: "text",
    started_at: "timestamptz",
    started_ns: "int",
    ended_at: "timestamptz",
    ended_ns: "int",
    end_reason: "text",
    start_position: "bigint",
    last_position: "bigint",
    end_position: "bigint",
    gaps: "int",
  },
};

export const sessions: View = {
  name: "sessions",
  version: 2,
  sessionTables: ["sessions"],
  async apply(tx, batch) {
    const ofSessions = batch.filter(({ event }) => event.session !== "" && event.kind !== "session.erased");
    if (ofSessions.length === 0) return;
    const names = [...new Set(ofSessions.map(({ event }) => event.session))];
    const known = await tx.selectFrom("sessions").selectAll().where("session", "in", names).execute();
    const rows = new Map(known.map((row) => [row.session, row]));
    for (const recorded of ofSessions) {
      rows.set(recorded.event.session, evolve(rows.get(recorded.event.session), recorded));
    }
    await upsert(tx, table, [...rows.values()]);
  },
};
