import { expect, it } from "vitest";
import { BatchTurns } from "./batch-turns.ts";

it("one batch after an idle time waits a little, and those of many workspaces share the turns", () => {
  const turns = new BatchTurns();
  expect(turns.waitMs(1_000)).toBe(20);
  expect(turns.waitMs(1_000)).toBe(50);
  expect(turns.waitMs(1_010)).toBe(90);
  expect(turns.waitMs(2_000)).toBe(20);
});

it("no batch waits longer than a second, nor because of earlier ones that did not wait", () => {
  const turns = new BatchTurns();
  const waits = Array.from({ length: 100 }, () => turns.waitMs(1_000));
  expect(Math.max(...waits)).toBe(1_000);
  expect(turns.waitMs(2_051)).toBe(20);
});
