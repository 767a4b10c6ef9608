import { expect, it } from "vitest";
import { comparison } from "./against.ts";
import type { FigureRow } from "./frame/row.ts";

const row = (figure: string, runs: readonly number[], more: Partial<FigureRow> = {}): FigureRow => ({
  part: "live",
  size: 100,
  figure,
  unit: "ms",
  calibration: "",
  targets: [],
  verdict: "no target",
  runs,
  calibrationRuns: [],
  ratios: [],
  counts: [],
  wallMs: [],
  cpuPerEvent: {},
  calibrationCpuPerEvent: {},
  cores: {},
  calibrationCores: {},
  clients: [],
  notes: [],
  ...more,
});

it("each figure that both checkouts have is compared pair by pair", () => {
  const ours = [[row("p50", [1, 2, 9]), row("new", [1])], [row("p50", [4])], [row("p50", [3])]];
  const theirs = [[row("p50", [4]), row("old", [1])], [row("p50", [4])], [row("p50", [], { error: "it was stuck" })]];
  const lines = comparison(ours, theirs, "abc1234").split("\n");
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ["FIGURE", "THIS CHECKOUT", "ABC1234", "RATIO", "OF EACH PAIR"],
    ["p50", "3 ms", "4 ms", "0.75", "0.5, 1"],
  ]);
});
