import { type Column, table } from "tapedeck/display/table";
import { type FigureRow, type Spread, spread, type Target } from "../frame/row.ts";

const columns: readonly Column[] = [
  { title: "FIGURE" },
  { title: "MEDIAN", align: "right" },
  { title: "CALIBRATION", align: "right" },
  { title: "RATIO", align: "right" },
  { title: "µs CPU/EVENT", align: "right" },
  { title: "TARGET" },
  { title: "" },
];

/** Renders the lines of a bench for people, and notes on single lines below them. */
export function benchTable(rows: readonly FigureRow[]): string {
  const notes: string[] = [];
  const mark = (row: FigureRow): string => {
    const about = row.error === undefined ? row.notes : [...row.notes, row.error];
    if (about.length === 0) return "";
    notes.push(about.join("; "));
    return ` [${notes.length}]`;
  };
  const lines = rows.map((row) => [
    `${nameAmong(rows, row)}${mark(row)}`,
    row.error === undefined ? `${withSpread(spread(row.runs))} ${row.unit}` : "-",
    row.error === undefined ? withSpread(spread(row.calibrationRuns)) : "-",
    row.error === undefined ? number(spread(row.ratios).median) : "-",
    row.error === undefined ? perEvent(row) : "-",
    targetText(row.targets, row.unit),
    row.verdict === "no target" ? "" : row.verdict,
  ]);
  return [
    table(columns, lines),
    ...(notes.length > 0 ? [""] : []),
    ...notes.map((text, at) => `[${at + 1}] ${text}`),
  ].join("\n");
}

/** One line as soon as it is measured. */
export function rowLine(row: FigureRow): string {
  const { figure, unit, verdict } = row;
  if (row.error !== undefined) return `${figure}: ${verdict}, ${row.error}`;
  const outcome = verdict === "no target" ? "" : `, ${verdict}`;
  return `${figure}: ${number(spread(row.runs).median)} ${unit}, × ${number(spread(row.ratios).median)}${outcome}`;
}

/** Renders the same lines for a document, with medians only. */
export function markdownTable(rows: readonly FigureRow[]): string {
  const cells = rows.map((row) => [
    nameAmong(rows, row),
    row.error === undefined ? `${number(spread(row.runs).median)} ${row.unit}` : `${row.verdict}: ${row.error}`,
    ...(row.error === undefined
      ? [number(spread(row.calibrationRuns).median), number(spread(row.ratios).median), perEvent(row)]
      : ["", "", ""]),
    targetText(row.targets, ""),
    row.verdict === "met" || row.verdict === "missed" ? row.verdict : "",
  ]);
  return markdown(["figure", "median", "calibration", "ratio", "µs", "target", ""], cells);
}

const flatnessColumns: readonly Column[] = [
  ...[{ title: "FIGURE" }, { title: "SIZES" }, { title: "FACTOR" }, { title: "" }, { title: "MEDIANS" }],
];

type Flatness = { readonly figure: string; readonly from: FigureRow; readonly to: FigureRow; readonly factor: number };

/** Figures measured at several sizes should not depend on the size: compares the largest with the smallest. */
function flatnesses(rows: readonly FigureRow[]): readonly Flatness[] {
  const measured = rows.filter(({ error }) => error === undefined);
  return [...Map.groupBy(measured, ({ figure }) => figure)].flatMap(([figure, some]) => {
    const ordered = some.toSorted((a, b) => a.size - b.size);
    const [from, to] = [ordered[0], ordered.at(-1)];
    if (from === undefined || to === undefined || from.size === to.size) return [];
    return [{ figure, from, to, factor: spread(to.runs).median / spread(from.runs).median }];
  });
}

const isFlat = ({ factor }: Flatness): boolean => factor <= 1.2 && factor >= 1 / 1.2;

/** A line for each figure that was measured at several sizes, and how many of them are flat; empty if there are none. */
export function flatnessTable(rows: readonly FigureRow[]): string {
  const all = flatnesses(rows);
  if (all.length === 0) return "";
  return `${table(flatnessColumns, all.map(flatnessCells))}\n\n${flatCount(all)}`;
}

/** The same for a document. */
export function markdownFlatness(rows: readonly FigureRow[]): string {
  const all = flatnesses(rows);
  if (all.length === 0) return "";
  return `${markdown(["figure", "sizes", "factor", "", "medians"], all.map(flatnessCells))}\n\n${flatCount(all)}`;
}

function flatnessCells(flatness: Flatness): string[] {
  const { figure, from, to, factor } = flatness;
  const medians = `${number(spread(from.runs).median)} to ${number(spread(to.runs).median)} ${to.unit}`;
  const sizes = `${short(from.size)} to ${short(to.size)}`;
  return [figure, sizes, `× ${number(factor)}`, isFlat(flatness) ? "flat" : "not flat", medians];
}

function flatCount(all: readonly Flatness[]): string {
  return `${all.filter(isFlat).length} of ${all.length} figures are flat within 20 %.`;
}

function markdown(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(titles), `|${titles.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}

/** Appends the size if another line has the same name. */
function nameAmong(rows: readonly FigureRow[], { figure, size }: FigureRow): string {
  const isOnly = rows.every((other) => other.figure !== figure || other.size === size);
  return isOnly ? figure : `${figure} (${short(size)})`;
}

/** `unit`: the unit of absolute bounds; empty if another column has it. */
function targetText(targets: readonly Target[], unit: string): string {
  return targets
    .map(({ of, atLeast, atMost }) => {
      const bound = atLeast === undefined ? `≤ ${number(atMost)}` : `≥ ${number(atLeast)}`;
      return of === "ratio" ? `${bound} of it` : `${bound} ${unit}`.trim();
    })
    .join(", ");
}

/** Median and the middle half of the runs. */
function withSpread({ median, low, high }: Spread): string {
  return `${number(median)} (${number(low)}–${number(high)})`;
}

/** The processor time of Tapedeck and its servers together; the JSON has each process. */
function perEvent({ cpuPerEvent, clients }: FigureRow): string {
  const measured = Object.entries(cpuPerEvent).filter(([name]) => !clients.includes(name));
  return measured.length === 0 ? "" : number(measured.reduce((sum, [, us]) => sum + us, 0));
}

export function number(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

export function short(size: number): string {
  return size >= 1_000_000 ? `${size / 1_000_000}m` : size >= 1_000 ? `${size / 1_000}k` : String(size);
}
