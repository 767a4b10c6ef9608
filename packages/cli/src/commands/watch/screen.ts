import { stripVTControlCharacters, styleText } from "node:util";
import { plural } from "@tapedeck/client/lanes/format";
import { barOf, failedLoop, type Headline, headlineOf } from "@tapedeck/client/lanes/headline";
import { firstFailure } from "@tapedeck/client/lanes/loop";
import { currentLoop, type Group, groupOf, groups, type Lane, type Now } from "@tapedeck/client/lanes/now";
import type { Loop } from "@tapedeck/client/lanes/step";
import cliTruncate from "cli-truncate";
import { plainLine } from "../../display/plain-line.ts";
import { spokenSource } from "../../display/source-name.ts";
import type { Colour } from "../../display/status-colour.ts";

/** The terminal's columns and rows, the time in ms since 1970, and `none`: the text without sources. */
export type Canvas = {
  readonly columns: number;
  readonly rows: number;
  readonly at: number;
  readonly none: string;
};

/** A sign for the eye, and a word where lines are searched. */
const signs: Readonly<
  Record<Headline["sign"], { readonly text: string; readonly word: string; readonly colour: Colour }>
> = {
  succeeded: { text: "✓", word: "ok", colour: "green" },
  failed: { text: "✕", word: "failed", colour: "red" },
  running: { text: "▶", word: "running", colour: "cyan" },
  canceled: { text: "○", word: "warning", colour: "yellow" },
  unknown: { text: "·", word: "unknown", colour: "dim" },
};

const barColumns = 32;
const maxLoops = 10;

/** All sources, failures first. Lines that do not fit below each other are counted in the last one. */
export function screenOf(now: Now, canvas: Canvas): readonly string[] {
  if (now.size === 0) return [canvas.none];
  const rows = [...now.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const byGroup = new Map(groups.map((group) => [group, rows.filter((row) => groupOf(row, canvas.at) === group)]));
  const width = Math.min(28, Math.max(...rows.map(({ source }) => spokenSource(source).length)));
  const lines = groups.flatMap((group) => {
    const own = byGroup.get(group) ?? [];
    return own.length === 0
      ? []
      : [styleText("bold", group.toUpperCase()), ...own.flatMap((row) => rowLines(row, width, canvas)), ""];
  });
  const all = [summary(byGroup), "", ...lines.slice(0, -1)];
  if (all.length < canvas.rows) return all;
  const visible = all.slice(0, Math.max(1, canvas.rows - 2));
  const hidden = `… ${plural(all.length - visible.length, "more line")}: a larger window shows them`;
  return [...visible, styleText("dim", cliTruncate(hidden, canvas.columns))];
}

function summary(byGroup: ReadonlyMap<Group, readonly Lane[]>): string {
  const counts = [...byGroup].flatMap(([group, { length }]) => (length === 0 ? [] : [`${length} ${group}`]));
  return counts.join(" · ");
}

function rowLines(row: Lane, width: number, { columns, at }: Canvas): readonly string[] {
  const headline = headlineOf(row, at);
  const { text: sign, colour } = signs[headline.sign];
  const name = plainLine(spokenSource(row.source)).padEnd(width);
  const step = headline.step === "" ? "" : `${plainLine(headline.step)}  `;
  const left = `${name}  ${styleText(colour, `${sign} ${step}`)}${plainLine(headline.text)}`;
  const right = [styleText("dim", plainLine(headline.note)), strip(row.loops)]
    .filter((part) => lengthOf(part) > 0)
    .join("  ");
  const first = beside(left, right, columns);
  const current = currentLoop(row);
  const isRoomy = columns >= width + 4 + barColumns;
  if (current === undefined || groupOf(row, at) !== "running" || !isRoomy) return [first];
  return [first, `${" ".repeat(width + 4)}${bar(row, current, at)}`];
}

/** The last loops, the newest right. */
function strip(loops: readonly Loop[]): string {
  const ended = loops.filter(({ endedAt }) => endedAt !== undefined).slice(-maxLoops);
  return ended.map(({ outcome = "unknown" }) => styleText(signs[outcome].colour, signs[outcome].text)).join("");
}

/** The loop to scale of its own usual time, which is a tick. */
function bar(row: Lane, loop: Loop, at: number): string {
  const { pieces, usual } = barOf(row, loop, at);
  const cells: string[] = new Array(barColumns).fill("·");
  for (const { left, width, step } of pieces) {
    const from = Math.floor((left / 100) * barColumns);
    const to = Math.max(from + 1, Math.round(((left + width) / 100) * barColumns));
    const isFailed = step.outcome === "failed";
    cells.fill(
      styleText(isFailed ? "red" : "cyan", step.endedAt === undefined ? "▒" : "█"),
      from,
      Math.min(to, barColumns),
    );
  }
  if (usual !== undefined) cells[Math.min(barColumns - 1, Math.floor((usual / 100) * barColumns))] = "│";
  return cells.join("");
}

/** Both in one line: the right one at the terminal's edge, and the left one cut where they meet. */
function beside(left: string, right: string, columns: number): string {
  const room = columns - lengthOf(right) - (right === "" ? 0 : 2);
  if (room < 20) return cliTruncate(left, columns);
  const text = cliTruncate(left, room);
  return right === "" ? text : `${text}${" ".repeat(Math.max(2, columns - lengthOf(text) - lengthOf(right)))}${right}`;
}

function lengthOf(line: string): number {
  return stripVTControlCharacters(line).length;
}

/** For a pipe: a line for each source whose sign or step differs from the last line printed for it. */
export function changesOf(now: Now, printed: Map<string, string>, at: number): readonly string[] {
  return [...now.values()].flatMap((row) => {
    if (isCauseDue(row, at)) return [];
    const { sign, step, text } = headlineOf(row, at);
    const state = `${sign} ${step}`;
    if (printed.get(row.source) === state) return [];
    printed.set(row.source, state);
    const activity = sign === "running" ? step : [step, text].filter((part) => part !== "").join(": ");
    return [`${new Date(at).toISOString()}  ${spokenSource(row.source)}  ${signs[sign].word}  ${activity}`];
  });
}

/** How long a line of a pipe, which is never corrected, waits for the cause. */
const maxCauseMs = 15_000;

function isCauseDue(row: Lane, at: number): boolean {
  const failed = failedLoop(row);
  const cause = failed && (firstFailure(failed.steps) ?? failed).cause;
  return failed !== undefined && cause === undefined && at - (failed.endedAt ?? at) < maxCauseMs;
}
