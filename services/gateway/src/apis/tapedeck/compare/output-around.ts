import type { EventJson } from "@tapedeck/shared/events/json";
import { terminalText } from "@tapedeck/shared/output/terminal-text";
import type { OutputLine } from "./side-summary.ts";

/** How many lines are read before and after the cause. */
const maxAround = 4;
const longestLine = 300;

type Line = { readonly text: string; readonly position: string; readonly printer: string };

/** The lines around the one that is the cause, of what printed it. Empty where the output does not have it. */
export function outputAround(written: readonly EventJson[], cause: string): readonly OutputLine[] {
  const lines = linesOf(written);
  const target = spaced(cause);
  const found =
    lines.find(({ text }) => spaced(text) === target) ?? lines.find(({ text }) => spaced(text).includes(target));
  if (found === undefined) return [];
  const own = lines.filter(({ printer, text }) => printer === found.printer && text.trim() !== "");
  const at = own.indexOf(found);
  return own.slice(Math.max(0, at - maxAround), at + maxAround + 1).map((line) => ({
    value: cut(line.text.trimEnd()),
    position: line.position,
    isCause: line === found,
  }));
}

/** Half a character at the end would be none. */
function cut(line: string): string {
  return line.length <= longestLine ? line : `${line.slice(0, longestLine).toWellFormed()}…`;
}

/**
 * Each step's output is a thread of its own, because builds run beside each other. A tool may write a line in pieces. A line
 * stands where its longest piece does.
 */
function linesOf(written: readonly EventJson[]): readonly Line[] {
  const lines: Line[] = [];
  const open = new Map<string, number>();
  for (const event of written) {
    const printer = printerOf(event);
    const text = terminalText(String(event.detail?.text ?? "").replace(/\r\n?/g, "\n"));
    for (const piece of text.split(/(?<=\n)/)) {
      const at = open.get(printer);
      const known = at === undefined ? undefined : lines[at];
      const own = { text: piece.replace(/\n$/, ""), position: event.position, printer };
      if (known !== undefined && at !== undefined) lines[at] = joined(known, own);
      else lines.push(own);
      if (piece.endsWith("\n")) open.delete(printer);
      else open.set(printer, at ?? lines.length - 1);
    }
  }
  return lines;
}

function joined(one: Line, other: Line): Line {
  const { position } = one.text.length < other.text.length ? other : one;
  return { ...one, text: one.text + other.text, position };
}

function printerOf({ detail, channel, subject, operation }: EventJson): string {
  const { task, subtask, pod, container } = detail ?? {};
  return JSON.stringify([channel, subject, operation?.runner, operation?.loop, task, subtask, pod, container]);
}

/** Tools quote the output of others: \"web\". */
function spaced(text: string): string {
  return text.replaceAll('\\"', '"').replace(/\s+/g, " ").trim();
}
