import { isDeepStrictEqual } from "node:util";
import type { Offset } from "@tapedeck/shared/log/offset";
import { storedTimestamp } from "../../db/timestamp.ts";
import type { RowChange } from "./history-table.ts";
import type { StateStep } from "./state-table.ts";

/** Columns of rows that outlive what they describe. */
export type Validity = {
  readonly gone: boolean;
  readonly gone_at: string | null;
  readonly first_position: Offset;
  readonly last_position: Offset;
};

/** The validity of a row that this event alone would write. */
export function validityFrom({ recorded: { offset } }: StateStep<unknown>): Validity {
  return { gone: false, gone_at: null, first_position: offset, last_position: offset };
}

export type StepRows<Row> = {
  /** The rows before and after the event, each as this event alone would write it. */
  readonly before: readonly Row[];
  readonly after: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Combines the row in the table with the reported one. Without it the reported row replaces the other. */
  readonly merge?: (known: Row, reported: Row) => Row;
};

/** Writes a row for what exists, and marks the row of what is gone. */
export function rowChanges<Row extends Validity>(
  step: StateStep<unknown>,
  { before, after, keyOf, merge = (_known, reported) => reported }: StepRows<Row>,
): readonly RowChange<Row>[] {
  const was = new Map(before.map((row) => [keyOf(row), row]));
  const now = new Map(after.map((row) => [keyOf(row), row]));
  const last_position = step.recorded.offset;
  const reported = [...now].filter(([key, row]) => !isDeepStrictEqual(was.get(key), row));
  const lost = [...was].filter(([key]) => !now.has(key));
  return [
    ...reported.map(([, row]) => ({
      row,
      write: (known = row) => {
        const { first_position } = known;
        return { ...merge(known, row), gone: false, gone_at: null, first_position, last_position };
      },
    })),
    ...lost.map(([, row]) => ({
      row,
      write: (known = row) => ({ ...known, gone: true, gone_at: removedAt(step), last_position }),
    })),
  ];
}

/** When it was first missed. */
function removedAt({ recorded: { event } }: StateStep<unknown>): string | null {
  return storedTimestamp(event.occurred_at ?? event.observed_at).at;
}
