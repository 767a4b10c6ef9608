import { table, upsert } from "../../db/table.ts";
import type { View } from "../view.ts";
import { evolve } from "./evolve.ts";

const sessionsTable = table("sessions", ["session"]);

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
    await upsert(tx, sessionsTable, [...rows.values()]);
  },
};
