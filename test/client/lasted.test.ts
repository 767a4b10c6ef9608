import { lastedMs } from "@tapedeck/client/lanes/lasted";
import { millisecondsBetween, storedTimestamp } from "@tapedeck/query/db/timestamp";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import fc from "fast-check";
import { expect, it } from "vitest";

const [minute, day, year] = [60_000, 24 * 3_600_000, 366 * 24 * 3_600_000];
const noon = Date.UTC(2026, 10, 20, 12);

function bySql(from: number, to: number, maxMs: number): number | undefined {
  const stored = (ms: number) => storedTimestamp(timestampOfMs(ms));
  return millisecondsBetween(stored(from), stored(to), maxMs) ?? undefined;
}

it.each([
  [noon, noon + 1_500, 1_500],
  [noon, noon - 30_000, 0],
  [noon, noon - minute, 0],
  [noon, noon - minute - 1, undefined],
  [0, noon, undefined],
  [noon, 0, undefined],
  [5_000, 7_000, undefined],
  [Date.UTC(2000, 0), Date.UTC(2000, 0) + 1, 1],
  [Date.UTC(2000, 0) - 1, Date.UTC(2000, 0), undefined],
  [noon, noon + year, year],
  [noon, noon + year + 1, undefined],
])("from %d to %d the page and the tables say %s", (from, to, ms) => {
  expect([lastedMs(from, to), bySql(from, to, year)]).toEqual([ms, ms]);
});

it("the page and the tables agree about all times", () => {
  const time = fc.oneof(fc.integer({ min: -day, max: noon * 2 }), fc.integer({ min: noon - day, max: noon + 2 * day }));
  fc.assert(
    fc.property(time, time, (from, to) => {
      expect(lastedMs(from, to)).toBe(bySql(from, to, year));
      expect(lastedMs(from, to, "pod")).toBe(bySql(from, to, 20 * year));
    }),
  );
});
