import { table, upsert } from "../../db/table.ts";
import type { View } from "../view.ts";
import { evolve } from "./evolve.ts";

const sourcesTable = table("sources", ["source"]);

export const sources: View = {
  name: "sources",
  version: 2,
  sessionTables: [],
  async apply(tx, batch) {
    const names = [...new Set(batch.map(({ event }) => event.source))];
    const known = await tx.selectFrom("sources").selectAll().where("source", "in", names).execute();
    const rows = new Map(known.map((row) => [row.source, row]));
    for (const recorded of batch) rows.set(recorded.event.source, evolve(rows.get(recorded.event.source), recorded));
    await upsert(tx, sourcesTable, [...rows.values()]);
  },
};
