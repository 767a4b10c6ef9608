import type { AnswerOf } from "../tapedeck/answers.ts";
import { type Answer, data, durationText, loopName, quoted, sourceText } from "./answer.ts";

type Comparison = AnswerOf<"Comparison">;
type Side = AnswerOf<"ComparedSide">;
type Difference = AnswerOf<"Difference">;

/** Output comes from where the failure was printed, and says less with every line. */
const maxOutput = 12;
/** Bytes that errors and output leave for the differences. */
const reservedBytes = 2_500;

/** What failed first on one side, and why. */
export function addSide(answer: Answer, side: Side): void {
  answer.add(headOf(side));
  const { failure } = side;
  if (failure === null) {
    answer.add(side.outcome === "failed" ? "  It is not recorded what failed first." : "  Nothing failed in it.");
    return;
  }
  const { phase, subject, errorCode, error, cause, tries, position, suggestions, output } = failure;
  const step = `${phase}${subject === "" ? "" : ` ${quoted(subject, 100)}`}${tries > 1 ? ` (${tries} tries)` : ""}`;
  const code = errorCode === "" ? "" : `, code ${quoted(errorCode, 60)}`;
  answer.add(`  Failed first: ${step}${code}, at position ${position}`);
  if (cause !== null) {
    const line = cause.line === null ? "" : `, line ${cause.line}`;
    const place = cause.file === null ? "" : `, in ${quoted(cause.file, 200)}${line}`;
    answer.add(`  Cause${cause.reason === "other" ? "" : ` (${quoted(cause.reason, 80)})`}${place}:`);
    answer.take(data(cause.text));
    if (cause.advice !== null) answer.add(`  The tool advises: ${quoted(cause.advice)}`);
  }
  if (error !== "" && error !== cause?.text) {
    answer.add("  Its error:");
    answer.take(data(error).slice(0, 5), reservedBytes);
  }
  const advised = suggestions.slice(0, 3).filter((one) => one !== cause?.advice);
  for (const suggestion of advised) answer.add(`  The tool suggests: ${quoted(suggestion)}`);
  const lines = output.slice(0, maxOutput);
  const [first] = lines;
  if (first === undefined) return;
  answer.add(`  Its output around that, from position ${first.position} on:`);
  answer.take(
    lines.flatMap(({ text }) => data(text)),
    reservedBytes,
  );
}

/** "alice/shop/skaffold, loop 4 (01…1.4): failed after 2.3 s" */
export function headOf(side: Side): string {
  const { source, session, unit, loop, subject, outcome, startedAt, durationMs } = side;
  const what =
    unit === "loop"
      ? `loop ${loop} (${loopName(side)})`
      : unit === "command"
        ? `command ${quoted(subject, 100)} (session ${session})`
        : `session ${session}`;
  const took = outcome === null ? "still running" : `${outcome} after ${durationText(durationMs)}`;
  return `${sourceText(source)}, ${what}: ${took}; began ${startedAt ?? "at an unknown time"}`;
}

/** What differs, the most likely explanations first. */
export function addDifferences(answer: Answer, { right, differences, equal }: Comparison): void {
  if (right === null) {
    answer.add("There is no good one before it to compare with.");
    return;
  }
  answer.add(`Beside: ${headOf(right)}`);
  if (differences.length === 0) {
    answer.add(`No difference is recorded; ${equal} facts are the same.`);
    return;
  }
  answer.add(`What differs, the most likely explanation first (${equal} facts are the same):`);
  const taken = answer.take(differences.map(differenceLine));
  const left = differences.length - taken;
  if (left > 0)
    answer.leaveOut(`${left} further differences, which explain less. Ask \`compare\` with more \`tokens\`.`);
}

function differenceLine({ kind, text, evidence }: Difference, index: number): string {
  const places = (side: string) => [
    ...new Set(evidence.filter((one) => one.side === side).map(({ position }) => position)),
  ];
  const [left = [], right = []] = [places("left").slice(0, 3), places("right").slice(0, 3)];
  const where = [
    ...(left.length === 0 ? [] : [`recorded at ${left.join(", ")}`]),
    ...(right.length === 0 ? [] : [`beside it at ${right.join(", ")}`]),
  ].join("; ");
  return `${index + 1}. ${kind}: ${quoted(text)}${where === "" ? "" : ` (${where})`}`;
}
