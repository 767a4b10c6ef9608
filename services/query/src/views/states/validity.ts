import { isDeepStrictEqual } from "node:util";
import { momentOf } from "../../db/moment.ts";
import type { Touch } from "./history-table.ts";
import type { Step } from "./state-table.ts";

/** Columns of rows that outlive what they tell of. */
export type Lasting = {
  readonly gone: boolean;
  readonly gone_at: string | null;
  readonly first_position: number;
  readonly last_position: number;
};

/** Of a row as this event alone would write it. */
export function there({ recorded: { seq } }: Step<unknown>): Lasting {
  return { gone: false, gone_at: null, first_position: seq, last_position: seq };
}

export type Told<Row> = {
  /** The rows of the same things before the event, and now, as this event alone would write them. */
  readonly was: readonly Row[];
  readonly now: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** What becomes of the row in the table when it is told anew; else it is put in its place. */
  readonly news?: (known: Row, row: Row) => Row;
};

/** What is there has its row; what is gone keeps it, marked. */
export function touches<Row extends Lasting>(step: Step<unknown>, told: Told<Row>): readonly Touch<Row>[] {
  const { keyOf, news: put = (_known, row) => row } = told;
  const was = new Map(told.was.map((row) => [keyOf(row), row]));
  const now = new Map(told.now.map((row) => [keyOf(row), row]));
  const last_position = step.recorded.seq;
  const news = [...now].filter(([key, row]) => !isDeepStrictEqual(was.get(key), row));
  const lost = [...was].filter(([key]) => !now.has(key));
  return [
    ...news.map(([, row]) => ({
      row,
      write: (known = row) => {
        const { first_position } = known;
        return { ...put(known, row), gone: false, gone_at: null, first_position, last_position };
      },
    })),
    ...lost.map(([, row]) => ({
      row,
      write: (known = row) => ({ ...known, gone: true, gone_at: goneAt(step), last_position }),
    })),
  ];
}

/** When it was missed first. */
function goneAt({ recorded: { event } }: Step<unknown>): string | null {
  return momentOf(event.occurred_at ?? event.observed_at).at;
}
