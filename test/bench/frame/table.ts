import { type Column, table } from "tapedeck/display/table";
import { type Row, type Spread, spread, type Target } from "./row.ts";

const columns: readonly Column[] = [
  { title: "FIGURE" },
  { title: "MEDIAN", align: "right" },
  { title: "CALIBRATION", align: "right" },
  { title: "RATIO", align: "right" },
  { title: "µs CPU/EVENT", align: "right" },
  { title: "TARGET" },
  { title: "" },
];

/** The lines of a bench for people; below them what they need to know about single lines. */
export function benchTable(rows: readonly Row[]): string {
  const notes: string[] = [];
  const mark = (row: Row): string => {
    const about = row.error === undefined ? row.notes : [...row.notes, row.error];
    if (about.length === 0) return "";
    notes.push(about.join("; "));
    return ` [${notes.length}]`;
  };
  const sizes = new Set(rows.map(({ size }) => size)).size;
  const lines = rows.map((row) => [
    `${row.figure}${sizes > 1 ? ` (${short(row.size)})` : ""}${mark(row)}`,
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

/** Figures that were measured at several sizes should not depend on them. */
export function flatness(rows: readonly Row[]): string {
  const byFigure = Map.groupBy(
    rows.filter(({ error }) => error === undefined),
    ({ figure }) => figure,
  );
  const lines = [...byFigure].flatMap(([figure, some]) => {
    const ordered = [...some].sort((a, b) => a.size - b.size);
    const [first, last] = [ordered[0], ordered.at(-1)];
    if (first === undefined || last === undefined || first.size === last.size) return [];
    const factor = spread(last.runs).median / spread(first.runs).median;
    const isFlat = factor <= 1.2 && factor >= 1 / 1.2;
    return [
      [figure, `${short(first.size)} to ${short(last.size)}`, `× ${number(factor)}`, isFlat ? "flat" : "not flat"],
    ];
  });
  if (lines.length === 0) return "";
  return table([{ title: "FIGURE" }, { title: "SIZES" }, { title: "FACTOR", align: "right" }, { title: "" }], lines);
}

function targetText(targets: readonly Target[], unit: string): string {
  return targets
    .map(({ of, atLeast, atMost }) => {
      const bound = atLeast === undefined ? `≤ ${number(atMost)}` : `≥ ${number(atLeast)}`;
      return of === "ratio" ? `${bound} of it` : `${bound} ${unit}`;
    })
    .join(", ");
}

/** Median and the middle half of the runs. */
function withSpread({ median, low, high }: Spread): string {
  return `${number(median)} (${number(low)}–${number(high)})`;
}

/** The processor time of Tapedeck and its servers together; the JSON has each process. */
function perEvent({ cpuPerEvent, clients }: Row): string {
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
