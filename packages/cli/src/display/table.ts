import Table from "cli-table3";
import { coloured } from "./colour.ts";

const none = "";
const noLines = Object.fromEntries(
  ["top", "top-mid", "top-left", "top-right", "bottom", "bottom-mid", "bottom-left", "bottom-right"]
    .concat(["left", "left-mid", "mid", "mid-mid", "right", "right-mid"])
    .map((place) => [place, none]),
);

export type Column = { readonly title: string; readonly align?: "left" | "right" };

/** Columns of text without lines; what a cell is coloured with does not count. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const made = new Table({
    head: columns.map(({ title }) => coloured("dim", title)),
    colAligns: columns.map(({ align = "left" }) => align),
    chars: { ...noLines, middle: "  " },
    style: { head: [], border: [], compact: true, "padding-left": 0, "padding-right": 0 },
  });
  for (const row of rows) made.push([...row]);
  return made
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
