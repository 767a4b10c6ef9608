import { find, table, upsert } from "../../db/table.ts";
import { withoutRepeats } from "../repeats.ts";
import type { View } from "../view.ts";
import { isInformative, rowAfter } from "./row.ts";

const sessionsTable = table("sessions", ["session"]);

export const sessions: View = {
  name: "sessions",
  version: 2,
  sessionTables: ["sessions"],
  async apply(tx, batch) {
    const ofSessions = batch.filter(({ event }) => event.session !== "" && event.kind !== "session.erased");
    if (ofSessions.length === 0) return;
    const names = new Set(ofSessions.map(({ event }) => event.session));
    const known = await find(
      tx,
      sessionsTable,
      [...names].map((session) => ({ session })),
    );
    const rows = new Map(known.map((row) => [row.session, row]));
    for (const recorded of withoutRepeats(ofSessions, "session", isInformative)) {
      rows.set(recorded.event.session, rowAfter(rows.get(recorded.event.session), recorded));
    }
    await upsert(tx, sessionsTable, [...rows.values()]);
  },
};
