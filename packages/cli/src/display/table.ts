import Table from "cli-table3";
import stringWidth from "string-width";
import { coloured } from "./colour.ts";
import { outputColumns } from "./output.ts";

const none = "";
const noLines = Object.fromEntries(
  ["top", "top-mid", "top-left", "top-right", "bottom", "bottom-mid", "bottom-left", "bottom-right"]
    .concat(["left", "left-mid", "mid", "mid-mid", "right", "right-mid"])
    .map((place) => [place, none]),
);
const between = "  ";

export type Column = {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Its cells are pasted into other commands, so they are never cut. */
  readonly isName?: boolean;
};

/**
 * Columns of text without lines; what a cell is coloured with does not count. Where a terminal is too narrow for all, the widest
 * columns are cut. A pipe gets everything.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  maxWidth = outputColumns(),
): string {
  const made = new Table({
    head: columns.map(({ title }) => coloured("dim", title)),
    colAligns: columns.map(({ align = "left" }) => align),
    colWidths: columnWidths(columns, rows, maxWidth),
    chars: { ...noLines, middle: between },
    style: { head: [], border: [], compact: true, "padding-left": 0, "padding-right": 0 },
  });
  for (const row of rows) made.push([...row]);
  return made
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

function columnWidths(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  maxWidth = Number.POSITIVE_INFINITY,
): number[] {
  const widths = columns.map(({ title }, at) =>
    Math.max(stringWidth(title), ...rows.map((row) => stringWidth(row[at] ?? ""))),
  );
  const room = maxWidth - between.length * (columns.length - 1);
  const isCuttable = (at: number) => !columns[at]?.isName && (widths[at] ?? 0) > stringWidth(columns[at]?.title ?? "");
  for (let excess = widths.reduce((sum, width) => sum + width, 0) - room; excess > 0; excess--) {
    const [widest] = [...widths.keys()].filter(isCuttable).toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
