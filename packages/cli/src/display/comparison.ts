import { styleText } from "node:util";
import type { ComparedSide, Comparison, Difference } from "@tapedeck/client";
import { agoText, durationText } from "./durations.ts";
import { plainLine } from "./plain-line.ts";
import { spokenSource } from "./source-name.ts";
import { statusColour } from "./status-colour.ts";

/** So many differences are shown: what comes after explains little. */
const most = 10;

/** What failed, beside what it is compared, and the differences with where they were recorded. */
export function comparisonText({ left, right, differences, equal }: Comparison): string {
  const shown = differences.slice(0, most);
  const hidden = differences.length - shown.length;
  const none =
    right === null ? "nothing to compare it with: no loop before it was good" : "nothing that differs is recorded";
  return [
    ...sideLines(left),
    ...(right === null ? [] : [styleText("dim", "beside"), ...sideLines(right)]),
    "",
    ...(differences.length === 0 ? [none] : shown.flatMap(differenceLines)),
    ...(hidden > 0 ? [styleText("dim", `    and ${hidden} more (--json shows all)`)] : []),
    ...(right === null ? [] : [styleText("dim", `    ${equal} facts are equal`)]),
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
  const head = `${styleText("bold", spokenSource(source))}  ${what}  ${styleText(statusColour(state), state)}${took}, ${agoText(startedAt)}`;
  if (failure === null) return [head];
  const step = plainLine([failure.phase, failure.subject].filter((part) => part !== "").join(" "));
  const code = failure.errorCode === "" ? "" : styleText("dim", `  ${codeText(plainLine(failure.errorCode))}`);
  return [
    head,
    `  ${styleText("red", `${step}: ${plainLine(failure.error) || "failed"}`)}${code}`,
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
    ...(right.length === 0 ? [] : [`${left.length === 0 ? "recorded beside, at" : "beside"} ${right.join(", ")}`]),
  ].join(" ");
  const number = String(index + 1).padStart(2);
  return [
    `${number}  ${plainLine(text)}`,
    styleText("dim", `    ${[kind, where].filter((part) => part !== "").join(", ")}`),
  ];
}
