import { find, type Table, upsert } from "../../db/table.ts";
import type { OfSession, StateStep, StateTable } from "./state-table.ts";

/** The effect of one event on one row. */
export type RowChange<Row> = {
  /** A row that has the key, whatever its other columns. */
  readonly row: Row;
  /** Makes the new row from the one in the table; undefined: the table has none. The same object: no change. */
  readonly write: (known: Row | undefined) => Row;
};

/** Rows that outlive what they describe: no row is removed, and every event of a batch counts. */
export function historyTable<State, Row>(
  table: Table<Row>,
  changesOf: (step: StateStep<State>, of: OfSession) => readonly RowChange<Row>[],
): StateTable<State> {
  const keyOf = (row: Row) => JSON.stringify(table.key.map((column) => row[column]));
  return {
    name: table.name,
    async write(tx, states) {
      const changes = states.flatMap(({ of, steps }) => steps.flatMap((step) => changesOf(step, of)));
      const byKey = Map.groupBy(changes, ({ row }) => keyOf(row));
      const keys = [...byKey.values()].flatMap(([first]) => (first === undefined ? [] : [first.row]));
      const known = new Map((await find(tx, table, keys)).map((row) => [keyOf(row), row]));
      const put: Row[] = [];
      for (const [key, ofRow] of byKey) {
        const before = known.get(key);
        const after = ofRow.reduce<Row | undefined>((row, { write }) => write(row), before);
        if (after !== undefined && after !== before) put.push(after);
      }
      await upsert(tx, table, put);
    },
  };
}
