import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { searchSeed } from "@tapedeck/shared/testing/searches";
import { expect, it } from "vitest";
import { inMessages } from "../testing/positions.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { withoutRepeats } from "./repeats.ts";
import * as sessions from "./sessions/row.ts";
import * as sources from "./sources/row.ts";

const batch = inMessages(randomEvents(seeded(searchSeed), 3_000), () => 7);

/** The row of each source or session after these events. */
function rowsAfter<Row>(
  events: readonly RecordedEvent[],
  of: "source" | "session",
  rowAfter: (row: Row | undefined, recorded: RecordedEvent) => Row,
): ReadonlyMap<string, Row> {
  const rows = new Map<string, Row>();
  for (const recorded of events) rows.set(recorded.event[of], rowAfter(rows.get(recorded.event[of]), recorded));
  return rows;
}

it.each([
  { of: "source", rowAfter: sources.rowAfter, isInformative: sources.isInformative },
  { of: "session", rowAfter: sessions.rowAfter, isInformative: sessions.isInformative },
] as const)("the events that are left make the same rows of each $of", ({ of, rowAfter, isInformative }) => {
  const left = withoutRepeats(batch, of, isInformative);
  expect(left.length).toBeLessThan(batch.length);
  expect(rowsAfter<unknown>(left, of, rowAfter as never)).toEqual(rowsAfter<unknown>(batch, of, rowAfter as never));
});
