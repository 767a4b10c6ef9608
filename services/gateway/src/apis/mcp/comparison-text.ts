import type { AnswerOf } from "../tapedeck/answers.ts";
import { type Answer, counted, data, durationText, loopName, quoted, sourceText } from "./answer.ts";

type Comparison = AnswerOf<"Comparison">;
type Side = AnswerOf<"ComparedSide">;
type Failure = NonNullable<Side["failure"]>;
type Difference = AnswerOf<"Difference">;

/** What a section leaves for the next ones. */
const keptShare = 1 / 3;

const moreTokens = "Ask again with more `tokens`.";

/** What failed first on one side, and why. */
export function addSide(answer: Answer, side: Side): void {
  answer.add(headOf(side));
  const { failure } = side;
  if (failure === null) {
    answer.add(side.outcome === "failed" ? "  It is not recorded what failed first." : "  Nothing failed in it.");
    return;
  }
  const { phase, subject, errorCode, tries, position } = failure;
  const step = `${phase}${subject === "" ? "" : ` ${quoted(subject, 100)}`}${tries > 1 ? ` (${tries} tries)` : ""}`;
  const code = errorCode === "" ? "" : `, code ${quoted(errorCode, 60)}`;
  answer.add(`  Failed first: ${step}${code}, at position ${position}`);
  addCause(answer, failure);
  addOutput(answer, failure, side);
}

/** The cause, the error of the step if it says something else, and what the tool advises. */
function addCause(answer: Answer, { error, cause, suggestions }: Failure): void {
  const keeping = answer.left * keptShare;
  if (cause !== null) {
    const line = cause.line === null ? "" : `, line ${cause.line}`;
    const place = cause.file === null ? "" : `, in ${quoted(cause.file, 200)}${line}`;
    const reason = cause.reason === "other" ? "" : ` (${quoted(cause.reason, 80)})`;
    const [text, rest] = [data(cause.text), () => `the rest of the cause. ${moreTokens}`];
    if (cause.text.trim() === "") answer.add(`  Cause${reason}${place}`);
    else answer.section({ heading: `  Cause${reason}${place}:`, entries: text, rest, keeping, isMain: true });
  }
  if (error.trim() !== "" && error !== cause?.text) {
    const rest = (count: number) =>
      `${count === 0 ? "a part" : counted(count, "more line")} of the error. ${moreTokens}`;
    const isMain = cause === null;
    answer.section({ heading: "  Its error:", entries: data(error), rest, keeping, isMain });
  }
  const advice = [
    ...(cause === null || cause.advice === null ? [] : [`  The tool advises: ${quoted(cause.advice)}`]),
    ...suggestions.filter((one) => one !== cause?.advice).map((one) => `  The tool suggests: ${quoted(one)}`),
  ];
  answer.section({
    entries: advice,
    rest: (count) => `${counted(count, "suggestion")} of the tool. ${moreTokens}`,
    keeping,
  });
}

function addOutput(answer: Answer, { output }: Failure, side: Side): void {
  const [first] = output;
  if (first === undefined) return;
  const name = side.unit === "loop" ? `loop ${loopName(side)}` : `session ${side.session}`;
  const rest = (count: number) =>
    `${count === 0 ? "a part" : counted(count, "more line")} of its output. Call \`read_output\` with ${name}.`;
  answer.section({
    heading: `  Its output around that, from position ${first.position} on:`,
    entries: output.flatMap(({ text }) => data(text)),
    rest,
    keeping: answer.left * keptShare,
  });
}

/** "alice/shop/skaffold, loop 4 (01…1.4): failed after 2.3 s" */
export function headOf(side: Side): string {
  const { source, session, unit, loop, subject, outcome, startedAt, durationMs, position } = side;
  const what =
    unit === "loop"
      ? `loop ${loop} (${loopName(side)})`
      : unit === "command"
        ? `command ${quoted(subject, 100)} (session ${session})`
        : `session ${session}`;
  const took = outcome === null ? "still running" : `${outcome} after ${durationText(durationMs)}`;
  return `${sourceText(source)}, ${what}: ${took}; began ${startedAt ?? "at an unknown time"}${outcome === null ? "" : `, ended at ${position}`}`;
}

/** What was recorded of a side and not read. */
export function addUnread(answer: Answer, { name, unread }: Side): void {
  for (const sentence of unread) answer.add(`Of ${quoted(name, 100)}: ${sentence}`);
}

/** What differs, the most likely explanations first. */
export function addDifferences(answer: Answer, { left, right, differences, equal, omitted }: Comparison): void {
  for (const side of right === null ? [left] : [left, right]) addUnread(answer, side);
  if (right === null) {
    answer.add("There is no good one before it to compare with.");
    return;
  }
  answer.add(`Beside: ${headOf(right)}`);
  const same = `${counted(equal, "fact")} ${equal === 1 ? "is" : "are"} the same`;
  if (differences.length === 0) {
    answer.add(`No difference is recorded; ${same}.`);
    return;
  }
  const further =
    omitted === 0 ? "" : `; ${counted(omitted, "further difference")}, which explain the least, not listed`;
  answer.section({
    heading: `What differs, the most likely explanation first (${same}${further}):`,
    entries: differences.map(differenceLine),
    rest: (count) =>
      `${counted(count, "further difference")}, which ${count === 1 ? "explains" : "explain"} less. ${moreTokens}`,
    isMain: true,
  });
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
