import type { TapedeckEvent } from "@tapedeck/client";
import { plainText } from "@tapedeck/client/lanes/format";
import { isErrorLine } from "@tapedeck/client/lanes/loop";
import { isOutput, type Output } from "./output.ts";

/** A row of a list of events: one event, or the pieces in which an upstream printed one line. */
export type EventLine = {
  /** The first of them. */
  readonly event: TapedeckEvent;
  readonly position: string;
  /** How many events it stands for. */
  readonly count: number;
  readonly text: string;
  /** It is output whose line has not ended. */
  readonly isOpen: boolean;
  /** It failed, or is output that looks like an error. */
  readonly isBad: boolean;
  /** How many lines of output after it are folded into this row. */
  readonly folded?: number;
};

/** Fewer lines are not worth a click. */
const minFolded = 4;

/**
 * The rows with long output as one row for each piece of it: what happened stands out. Lines that look like errors are
 * never folded. `unfolded`: the positions of the rows that were opened.
 */
export function foldedOutput(rows: readonly EventLine[], unfolded: ReadonlySet<string>): readonly EventLine[] {
  const found: EventLine[] = [];
  for (let at = 0; at < rows.length; ) {
    const end = endOfOutput(rows, at);
    const [first] = rows.slice(at, at + 1);
    if (first === undefined) break;
    if (end - at < minFolded || unfolded.has(first.position)) {
      for (const row of rows.slice(at, Math.max(end, at + 1))) found.push(row);
    } else {
      const count = eventCount(rows.slice(at, end));
      found.push({ ...first, count, folded: end - at - 1 });
    }
    at = Math.max(end, at + 1);
  }
  return found;
}

/** The index after the lines of output that begin at a row. */
function endOfOutput(rows: readonly EventLine[], from: number): number {
  let end = from;
  for (let row = rows[end]; row !== undefined && isOutput(row.event) && !row.isBad; row = rows[end]) end++;
  return end;
}

/** Between the pieces of a line comes little: what other steps print meanwhile. */
const maxBetween = 100;
const maxText = 2_000;

/** The rows after more events. */
export function foldRows(rows: readonly EventLine[], events: readonly TapedeckEvent[]): readonly EventLine[] {
  const all = rows.slice();
  for (const event of events) {
    const at = isOutput(event) ? openLine(all, event) : -1;
    const open = all[at];
    if (open === undefined || !isOutput(event)) all.push(isOutput(event) ? outputRow(event) : rowOf(event));
    else all[at] = longer(open, event);
  }
  return all;
}

/** How many events rows stand for. */
export function eventCount(rows: readonly EventLine[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}

function rowOf(event: TapedeckEvent): EventLine {
  const { position, summary: text } = event;
  return { event, position, count: 1, text, isOpen: false, isBad: event.outcome === "failed" };
}

function outputRow(event: Output): EventLine {
  const piece = pieceOf(event);
  const isOpen = writerOf(event) !== undefined && piece !== "" && !piece.includes("\n");
  const text = isOpen ? piece.slice(0, maxText) : event.summary;
  return { ...rowOf(event), text, isOpen, isBad: isErrorLine(text) || hasErrorLevel(event) };
}

function longer(row: EventLine, event: Output): EventLine {
  const piece = pieceOf(event);
  const [line = ""] = `${row.text}${piece}`.split("\n");
  const text = line.slice(0, maxText);
  const isBad = row.isBad || isErrorLine(text) || hasErrorLevel(event);
  return { ...row, count: row.count + 1, text, isOpen: !piece.includes("\n"), isBad };
}

function pieceOf({ detail }: Output): string {
  return plainText(detail?.text ?? "");
}

function hasErrorLevel({ detail }: Output): boolean {
  return /^(error|fatal|panic)$/i.test(detail?.level ?? "");
}

/** The step whose output it is. Undefined: each event is a separate line, as for containers. */
function writerOf({ kind, detail }: Output): string | undefined {
  if (detail === undefined) return undefined;
  const { task, subtask, output } = detail;
  if (output !== undefined) return `${kind} ${output.job} ${output.stream}`;
  return task === "" ? undefined : `${kind} ${task} ${subtask}`;
}

/** The row of the line that an output continues; -1: it begins one. */
function openLine(rows: readonly EventLine[], event: Output): number {
  const writer = writerOf(event);
  if (writer === undefined) return -1;
  for (let at = rows.length - 1; at >= Math.max(0, rows.length - maxBetween); at--) {
    const row = rows[at];
    if (row !== undefined && isOutput(row.event) && writerOf(row.event) === writer) return row.isOpen ? at : -1;
  }
  return -1;
}
