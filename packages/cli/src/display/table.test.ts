import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { coloured } from "./colour.ts";
import { type Column, table } from "./table.ts";

const columns: readonly Column[] = [
  { title: "LOOP", isName: true },
  { title: "OUTCOME" },
  { title: "REASON", isExtra: true },
  { title: "FAILED FIRST" },
];
const name = "alice/shop#K40VYDZMY.1.54";
const rows = [
  [name, coloured("red", "failed"), "the cluster refuses the manifest", `deploy: ${"古".repeat(40)}`],
  ["bob/shop#2", coloured("green", "succeeded"), "", ""],
];
const lines = (width?: number) => stripVTControlCharacters(table(columns, rows, width)).split("\n");
/** Each of these characters takes two columns. */
const widthOf = (line: string) => line.length + (line.match(/古/g)?.length ?? 0);

it("uses the width that there is, and cuts no names", () => {
  expect(lines(140)[1]).toMatch(/^alice.* failed +the cluster refuses the manifest +deploy: 古+…$/);
  for (const width of [60, 80, 140]) {
    expect(Math.max(...lines(width).map(widthOf))).toBeLessThanOrEqual(width);
    expect(Math.max(...lines(width).map(widthOf))).toBeGreaterThan(width - 3);
    expect(lines(width)[1]).toContain(name);
  }
});

it("leaves out what is least needed before it cuts the rest too much, and nothing in a pipe", () => {
  expect(lines(80)[0]).toMatch(/^LOOP +OUTCOME +FAILED FIRST$/);
  expect(lines()[1]).toBe(
    rows[0]
      ?.map((cell) => stripVTControlCharacters(cell))
      .join("  ")
      .replace("failed ", "failed    "),
  );
  expect(lines(20)[1]).toContain(name);
});
