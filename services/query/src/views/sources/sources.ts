import { find, table, upsert } from "../../db/table.ts";
import { withoutRepeats } from "../repeats.ts";
import type { View } from "../view.ts";
import { isInformative, rowAfter } from "./row.ts";

const sourcesTable = table("sources", ["source"]);

export const sources: View = {
  name: "sources",
  version: 1,
  sessionTables: [],
  async apply(tx, batch) {
    const names = new Set(batch.map(({ event }) => event.source));
    const known = await find(
      tx,
      sourcesTable,
      [...names].map((source) => ({ source })),
    );
    const rows = new Map(known.map((row) => [row.source, row]));
    for (const recorded of withoutRepeats(batch, "source", isInformative)) {
      rows.set(recorded.event.source, rowAfter(rows.get(recorded.event.source), recorded));
    }
    await upsert(tx, sourcesTable, [...rows.values()]);
  },
};
