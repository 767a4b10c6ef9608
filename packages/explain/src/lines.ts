import { type Level, unframed } from "./frames.ts";

/** One printed line in the forms that rules read. */
export type Line = {
  /** The printed text, without control sequences. */
  readonly text: string;
  /** Without what wraps it (times, names of containers, steps of a builder), and without indent. */
  readonly bare: string;
  /** The columns before `bare` inside its frame. */
  readonly indent: number;
  /** The level of a log line. */
  readonly level: Level | undefined;
};

/** A cause stands near the end; the head has the first errors of a long output. In characters. */
const maxHead = 64 * 1_024;
const maxTail = 192 * 1_024;
/** Rules read so much of a line. */
const maxRead = 500;
/** How much of a line is quoted. */
const maxQuoted = 2_000;

const esc = String.fromCharCode(27);
const bell = String.fromCharCode(7);
/** Sequences that move to the start of the line or erase it: the next text replaces what was there. */
const restart = new RegExp(`${esc}\\[(?:1?G|2K)`, "g");
const sequence = new RegExp(
  `${esc}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${esc}${bell}]*(?:${bell}|${esc}\\\\)?|[ -/]*[0-~])`,
  "g",
);
const control = /[\p{Cc}--\t]/gv;

export function linesOf(output: string): readonly Line[] {
  return bounded(output).split("\n").flatMap(expanded);
}

function bounded(output: string): string {
  if (output.length <= maxHead + maxTail) return output;
  const head = output.slice(0, maxHead);
  const tail = output.slice(-maxTail);
  return `${head.slice(0, head.lastIndexOf("\n") + 1)}${tail.slice(tail.indexOf("\n") + 1)}`;
}

function expanded(printed: string): readonly Line[] {
  const text = visible(printed);
  if (text === "") return [emptyLine];
  const quoted = quotedOutput(text);
  return quoted === undefined ? [lineOf(text)] : quoted.map(lineOf);
}

const emptyLine: Line = { text: "", bare: "", indent: 0, level: undefined };

export function lineOf(text: string): Line {
  const { rest, level } = unframed(text.slice(0, maxRead));
  const bare = rest.trim();
  return { text: text.slice(0, maxQuoted).trimEnd(), bare, indent: rest.length - rest.trimStart().length, level };
}

/** What a terminal shows of a line in the end: progress bars rewrite theirs. */
function visible(printed: string): string {
  const parts = printed
    .slice(0, 4 * maxQuoted)
    .replace(restart, "\r")
    .split("\r");
  const cleaned = parts.map((part) => part.replace(sequence, "").replace(control, ""));
  return cleaned.findLast((part) => part.trim().length > 1) ?? "";
}

/** Skaffold quotes the output of commands: ` - stderr: "error: …\n"`. */
function quotedOutput(text: string): readonly string[] | undefined {
  const said = /^\s*(?:- )?std(?:out|err): "(?<said>.*)"\.?$/.exec(text)?.groups?.said;
  if (said === undefined) return undefined;
  return unescaped(said)
    .split("\n")
    .filter((line) => line.trim() !== "");
}

const escapes: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["t", "\t"],
]);

export function unescaped(quoted: string): string {
  return quoted.replace(/\\([nt"\\])/g, (_, sign: string) => escapes.get(sign) ?? sign);
}
