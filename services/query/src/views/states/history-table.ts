import { find, type Table, upsert } from "../../db/table.ts";
import type { OfSession, StateTable, Step } from "./state-table.ts";

/** What one event did to one row. */
export type Touch<Row> = {
  /** A row that has the key, whatever its other columns. */
  readonly row: Row;
  /** The row as it is from now on, from what is in the table; undefined: nothing is yet. The same object: as it was. */
  readonly write: (known: Row | undefined) => Row;
};

/** Rows that outlive what they tell of: nothing is ever removed from the table, and every event of a batch counts. */
export function historyTable<State, Row>(
  table: Table<Row>,
  touched: (step: Step<State>, of: OfSession) => readonly Touch<Row>[],
): StateTable<State> {
  const keyOf = (row: Row) => JSON.stringify(table.key.map((column) => row[column]));
  return {
    name: table.name,
    async write(tx, changes) {
      const touches = new Map<string, Touch<Row>[]>();
      for (const touch of changes.flatMap(({ of, steps }) => steps.flatMap((step) => touched(step, of)))) {
        const key = keyOf(touch.row);
        const earlier = touches.get(key);
        if (earlier === undefined) touches.set(key, [touch]);
        else earlier.push(touch);
      }
      const keys = [...touches.values()].flatMap(([first]) => (first === undefined ? [] : [first.row]));
      const known = new Map((await find(tx, table, keys)).map((row) => [keyOf(row), row]));
      const put: Row[] = [];
      for (const [key, ofRow] of touches) {
        const before = known.get(key);
        const after = ofRow.reduce<Row | undefined>((row, { write }) => write(row), before);
        if (after !== undefined && after !== before) put.push(after);
      }
      await upsert(tx, table, put);
    },
  };
}
