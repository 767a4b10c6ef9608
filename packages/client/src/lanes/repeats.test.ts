import { expect, it } from "vitest";
import { repeatsOf } from "./repeats.ts";
import type { Step } from "./step.ts";

const step = (kind: string, subject: string, startedAt: number, endedAt: number | undefined): Step => ({
  kind,
  subject,
  instance: "",
  startedAt,
  endedAt,
  isUntimed: false,
  outcome: endedAt === undefined ? undefined : "failed",
  error: "",
  cause: null,
  errorCode: "",
  isCached: false,
  position: `${startedAt}`,
  endPosition: undefined,
});

it("tries of the same step are one row with their number, in the order in which they first began", () => {
  const tries = [1, 3, 5, 7].map((at) => step("sync", "web", at, at + 1));
  const rows = repeatsOf([tries[0], step("build", "api", 2, 9), ...tries.slice(1)].filter((one) => one !== undefined));
  expect(rows.map(({ text, steps }) => [text, steps.length])).toEqual([
    ["sync web ×4", 4],
    ["build api", 1],
  ]);
});

it("steps that run at the same time, and other subjects, have rows of their own", () => {
  const rows = repeatsOf([step("build", "api", 1, 4), step("build", "api", 2, 3), step("build", "web", 5, undefined)]);
  expect(rows.map(({ text }) => text)).toEqual(["build api", "build api", "build web"]);
});
