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
  /** Left out where the others would be cut too much with it. */
  readonly isExtra?: boolean;
};

/** A text that is cut further says too little. */
const minText = 32;

/**
 * Columns of text without lines; what a cell is coloured with does not count. Where a terminal is too narrow for all, the widest
 * columns are cut. A pipe gets everything.
 */
export function table(
  all: readonly Column[],
  rows: readonly (readonly string[])[],
  maxWidth = outputColumns() ?? Number.POSITIVE_INFINITY,
): string {
  const natural = naturalWidths(all, rows);
  const shown = shownColumns(all, natural, maxWidth);
  const columns = shown.flatMap((at) => all[at] ?? []);
  const made = new Table({
    head: columns.map(({ title }) => coloured("dim", title)),
    colAligns: columns.map(({ align = "left" }) => align),
    colWidths: cutWidths(all, natural, shown, maxWidth),
    chars: { ...noLines, middle: between },
    style: { head: [], border: [], compact: true, "padding-left": 0, "padding-right": 0 },
  });
  for (const row of rows) made.push(shown.map((at) => row[at] ?? ""));
  return made
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

function naturalWidths(columns: readonly Column[], rows: readonly (readonly string[])[]): readonly number[] {
  return columns.map(({ title }, at) => Math.max(stringWidth(title), ...rows.map((row) => stringWidth(row[at] ?? ""))));
}

/** All, or all that fit without those that are least needed, the last of which goes first. */
function shownColumns(columns: readonly Column[], natural: readonly number[], maxWidth: number): readonly number[] {
  let shown: readonly number[] = [...natural.keys()];
  for (;;) {
    const cut = cutWidths(columns, natural, shown, maxWidth);
    const isTooNarrow = shown.some((at, index) => (cut[index] ?? 0) < Math.min(minText, natural[at] ?? 0));
    const last = isTooNarrow || widthOf(cut) > maxWidth ? shown.findLast((at) => columns[at]?.isExtra) : undefined;
    if (last === undefined) return shown;
    shown = shown.filter((at) => at !== last);
  }
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + between.length * (widths.length - 1);
}

/** Texts are cut: neither names nor numbers, which are on the right. */
function cutWidths(
  columns: readonly Column[],
  natural: readonly number[],
  shown: readonly number[],
  maxWidth: number,
): number[] {
  const widths = shown.map((at) => natural[at] ?? 0);
  const least = shown.map((at) => {
    const { title = "", align, isName } = columns[at] ?? {};
    return isName || align === "right" ? Number.POSITIVE_INFINITY : stringWidth(title);
  });
  for (let excess = widthOf(widths) - maxWidth; excess > 0; excess--) {
    const cuttable = [...widths.keys()].filter((at) => (widths[at] ?? 0) > (least[at] ?? 0));
    const [widest] = cuttable.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
