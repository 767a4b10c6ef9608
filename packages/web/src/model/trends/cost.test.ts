import { expect, it } from "vitest";
import { fittedRange, hasRange } from "./choice.ts";
import { costliestCause, costliestPhase, periodBefore } from "./cost.ts";
import type { Causes, WaitedFor } from "./figures.ts";

const waited = (phase: WaitedFor["phase"], ms: number, share: number): WaitedFor => ({ phase, ms, share, series: [] });

const [day, week] = [1, 7].map((days) => periodBefore({ from: 0, to: days * 86_400_000 })) as [string, string];
const nothing = "nothing to compare with in the 7 days before";

it("the costliest phase has its share before", () => {
  const now = [waited("other", 90_000, 0.5), waited("check", 60_000, 0.3), waited("build", 40_000, 0.2)];
  expect(costliestPhase({ now, before: [waited("check", 9, 0.12)] }, week)).toEqual({
    what: "check",
    cost: "1 min of waiting, 30 %",
    before: "12 % in the 7 days before",
    isNew: false,
  });
  expect(costliestPhase({ now, before: [waited("build", 9, 1)] }, week)).toMatchObject({
    before: "new: none in the 7 days before",
    isNew: true,
  });
  expect(costliestPhase({ now, before: [] }, week)).toMatchObject({ before: nothing, isNew: false });
  expect(costliestPhase({ now: [], before: [] }, week)).toBeUndefined();
});

it("the costliest cause is new only where something ran before", () => {
  const cause = { key: "compile error/x", reason: "compile error", cause: "compile error: x", count: 3, counts: [3] };
  const causes: Causes = { top: [cause], rest: undefined, count: 4 };
  expect(costliestCause(causes, new Map([["compile error/x", 2]]), true, week)).toEqual({
    key: "compile error/x",
    what: "compile error: x",
    cost: "3 of 4 failures",
    before: "not new: 2 in the 7 days before",
    isNew: false,
  });
  expect(costliestCause(causes, new Map(), true, day)).toMatchObject({
    before: "new: none in the day before",
    isNew: true,
  });
  expect(costliestCause(causes, new Map(), false, week)).toMatchObject({ before: nothing, isNew: false });
  expect(costliestCause({ top: [], rest: undefined, count: 0 }, new Map(), true, week)).toBeUndefined();
});

it.each([
  [[0], "24h"],
  [[0, 6], "7d"],
  [[3], "7d"],
  // Something ran in the week before, too.
  [[0, 7], "7d"],
  [[2, 13, 40], "7d"],
  [[9, 10], "30d"],
  [[0, 29], "30d"],
  [[0, 200], "30d"],
  [[5, 200], "30d"],
  [[40, 50], "90d"],
  [[100, 300], "1y"],
  [[], "30d"],
])("the range fits loops that are %j days old: %s", (ages, range) => {
  expect(fittedRange(ages)).toBe(range);
});

it("a URL that names a range keeps it", () => {
  expect(["?range=7d", "?from=2026-11-01&to=2026-11-02", "?by=developer", ""].map(hasRange)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
