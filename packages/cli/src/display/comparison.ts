import type { ComparedSide, Comparison, Difference } from "@tapedeck/client";
import { coloured } from "./colour.ts";
import { agoText, durationText } from "./durations.ts";
import { plainLine } from "./plain-line.ts";
import { spokenSource } from "./source-name.ts";
import { statusColour } from "./status-colour.ts";

/** So many differences are shown: what comes after explains little. */
const max = 10;

/** What failed, beside what it is compared, and the differences with where they were recorded. */
export function comparisonText({ left, right, differences, equal }: Comparison): string {
  const visible = differences.slice(0, max);
  const hidden = differences.length - visible.length;
  const none =
    right === null ? "nothing to compare it with: no loop before it was good" : "no differences are recorded";
  return [
    ...sideLines(left),
    ...(right === null ? [] : [coloured("dim", "beside"), ...sideLines(right)]),
    "",
    ...(differences.length === 0 ? [none] : visible.flatMap(differenceLines)),
    ...(hidden > 0 ? [coloured("dim", `    and ${hidden} more (--json shows all)`)] : []),
    ...(right === null ? [] : [coloured("dim", `    ${equal} facts are equal`)]),
  ].join("\n");
}

function sideLines({
  source,
  session,
  unit,
  loop,
  subject,
  outcome,
  startedAt,
  durationMs,
  failure,
}: ComparedSide): string[] {
  const what = unit === "loop" ? `loop ${loop}` : unit === "command" ? plainLine(subject) : `session ${session}`;
  const state = outcome ?? "running";
  const took = durationMs === null ? "" : ` after ${durationText(Number(durationMs))}`;
  const head = `${coloured("bold", spokenSource(source))}  ${what}  ${coloured(statusColour(state), state)}${took}, ${agoText(startedAt)}`;
  if (failure === null) return [head];
  const named = plainLine([failure.phase, failure.subject].filter((part) => part !== "").join(" "));
  const step = failure.tries > 1 ? `${named} (${failure.tries} tries)` : named;
  const code = failure.errorCode === "" ? "" : coloured("dim", `  ${codeText(plainLine(failure.errorCode))}`);
  return [
    head,
    `  ${coloured("red", `${step}: ${plainLine(failure.error) || "failed"}`)}${code}`,
    ...failure.log.map(({ text }) => `  ${plainLine(text)}`),
    ...failure.suggestions.map((text) => `  Suggestion: ${plainLine(text)}`),
  ];
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
