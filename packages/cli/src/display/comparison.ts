import type { Cause, ComparedSide, Comparison, Difference } from "@tapedeck/client";
import { causeText, placeText } from "@tapedeck/client/lanes/headline";
import { terminalText } from "@tapedeck/shared/output/terminal-text";
import { coloured } from "./colour.ts";
import { agoText, durationText } from "./durations.ts";
import { plainLine } from "./plain-line.ts";
import { spokenSource } from "./source-name.ts";
import { statusColour } from "./status-colour.ts";

/** How many differences are shown: later ones explain little. */
const max = 10;

/** What failed, beside what it is compared, and the differences with where they were recorded. */
export function comparisonText({ left, right, differences, equal, omitted }: Comparison): string {
  const folded = withFilesInOne(differences);
  const visible = folded.slice(0, max);
  const hidden = folded.length - visible.length + omitted;
  const shownByJson = omitted === 0 ? "all" : `the first ${differences.length}`;
  const none =
    right === null ? "nothing to compare it with: no loop before it was good" : "no differences are recorded";
  return [
    ...sideLines(left),
    ...(right === null ? [] : [coloured("dim", "beside"), ...sideLines(right)]),
    "",
    ...(differences.length === 0 ? [none] : visible.flatMap(differenceLines)),
    ...(hidden > 0 ? [coloured("dim", `    and ${hidden} more (--json shows ${shownByJson})`)] : []),
    ...(right === null ? [] : [coloured("dim", `    ${equal} facts are equal`)]),
  ].join("\n");
}

/** "bob/shop  loop 4  failed after 2.3 s, 3 min ago" */
export function sideLine(side: ComparedSide): string {
  const { source, session, unit, loop, subject, outcome, startedAt, durationMs } = side;
  const what = unit === "loop" ? `loop ${loop}` : unit === "command" ? plainLine(subject) : `session ${session}`;
  const state = outcome ?? "running";
  const took = durationMs === null ? "" : ` after ${durationText(durationMs)}`;
  return `${coloured("bold", spokenSource(source))}  ${what}  ${coloured(statusColour(state), state)}${took}, ${agoText(startedAt)}`;
}

function sideLines(side: ComparedSide): string[] {
  const { failure, unread } = side;
  const head = [sideLine(side), ...unread.map((sentence) => coloured("dim", `  ${sentence}`))];
  if (failure === null) return head;
  const named = plainLine([failure.phase, failure.subject].filter((part) => part !== "").join(" "));
  const step = failure.tries > 1 ? `${named} (${failure.tries} tries)` : named;
  const code = failure.errorCode === "" ? "" : coloured("dim", `  ${codeText(plainLine(failure.errorCode))}`);
  return [
    ...head,
    `  ${coloured("red", `${step}: ${plainLine(causeText(failure))}`)}${code}`,
    ...reasonLine(failure.cause),
    ...failure.output.map(({ text, isCause }) => outputLine(text, isCause)),
    ...(failure.cause?.advice == null ? [] : [`  Suggestion: ${plainLine(failure.cause.advice)}`]),
  ];
}

/** "  compile error in src/room.ts:41" */
function reasonLine(cause: Cause | null): string[] {
  if (cause === null) return [];
  const place = placeText(cause);
  if (cause.reason === "other") return place === "" ? [] : [`  in ${plainLine(place)}`];
  return [`  ${plainLine(place === "" ? cause.reason : `${cause.reason} in ${place}`)}`];
}

function outputLine(text: string, isCause: boolean): string {
  const line = terminalText(text);
  return isCause ? `  ${coloured("red", `> ${line}`)}` : coloured("dim", `    ${line}`);
}

/** How many files are named in one line. */
const maxFiles = 8;

/** Several files are one difference, with the rank of the first. */
function withFilesInOne(differences: readonly Difference[]): readonly Difference[] {
  const files = differences.filter(({ kind }) => kind === "file");
  const [first] = files;
  if (first === undefined || files.length === 1) return differences;
  const names = files.slice(0, maxFiles).map(({ subject, left }) => `${subject} ${left ?? ""}`);
  const others = files.length - names.length;
  const text = `changed files: ${names.join(", ")}${others > 0 ? ` and ${others} more` : ""}`;
  const one = { ...first, text, evidence: files.flatMap(({ evidence }) => evidence) };
  return differences
    .filter((difference) => difference === first || difference.kind !== "file")
    .map((difference) => (difference === first ? one : difference));
}

/** Vagrant's and rkt's codes are the numbers with which commands and apps exit. */
function codeText(code: string): string {
  return /^\d+$/.test(code) ? `exit code ${code}` : code;
}

function differenceLines({ kind, text, evidence }: Difference, index: number): string[] {
  const places = (side: string) => [
    ...new Set(evidence.filter((one) => one.side === side).map(({ position }) => position)),
  ];
  const [left, right] = [places("left"), places("right")];
  const where = [
    ...(left.length === 0 ? [] : [`recorded at ${left.join(", ")}`]),
    ...(right.length === 0
      ? []
      : [`${left.length === 0 ? "recorded on the other side at" : "beside"} ${right.join(", ")}`]),
  ].join(" ");
  const number = String(index + 1).padStart(2);
  return [
    `${number}  ${plainLine(text)}`,
    coloured("dim", `    ${[kind, where].filter((part) => part !== "").join(", ")}`),
  ];
}
