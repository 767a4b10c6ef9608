import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Tx } from "../../db/database.ts";
import type { Schema } from "../../db/schema.ts";
import { remove, type Table, upsert } from "../../db/table.ts";

export type OfSession = { readonly session: string; readonly source: string };

/** A batch's effect on a session's state. */
export type StateChange<State> = {
  readonly of: OfSession;
  readonly before: State | undefined;
  readonly after: State;
  /** Each event that changed the state, in the order of the log. */
  readonly steps: readonly StateStep<State>[];
};

export type StateStep<State> = { readonly before: State; readonly after: State; readonly recorded: RecordedEvent };

/** States as rows, for SQL. The rows depend on the events alone, never on how they were cut into batches. */
export type StateTable<State> = {
  readonly name: keyof Schema & string;
  readonly write: (tx: Tx, changes: readonly StateChange<State>[]) => Promise<void>;
};

/** A table that holds at any time exactly the rows of each session's state. */
export function stateTable<State, Row>(
  table: Table<Row>,
  rowsOf: (state: State, of: OfSession) => readonly Row[],
): StateTable<State> {
  const byKey = (state: State, of: OfSession) =>
    new Map(rowsOf(state, of).map((row) => [JSON.stringify(table.key.map((column) => row[column])), row]));
  return {
    name: table.name,
    async write(tx, changes) {
      const put: Row[] = [];
      const removed: Row[] = [];
      for (const { of, before, after } of changes) {
        const old = before === undefined ? new Map<string, Row>() : byKey(before, of);
        const now = byKey(after, of);
        for (const [key, row] of now) if (JSON.stringify(old.get(key)) !== JSON.stringify(row)) put.push(row);
        for (const [key, row] of old) if (!now.has(key)) removed.push(row);
      }
      await remove(tx, table, removed);
      await upsert(tx, table, put);
    },
  };
}
