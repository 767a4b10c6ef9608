import { isSame, type Step } from "./step.ts";

/** The failed step that ended first: what failed after it followed from it. A step that succeeded when tried again is none. */
export function firstFailure(steps: readonly Step[]): Step | undefined {
  const failed = steps.filter((step) => step.outcome === "failed" && step.kind !== "loop" && isFailing(steps, step));
  return failed.toSorted((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0) || b.startedAt - a.startedAt)[0];
}

function isFailing(steps: readonly Step[], step: Step): boolean {
  return steps.findLast((one) => isSame(one, step))?.outcome !== "succeeded";
}

/** How often the step failed in its loop: Skaffold tries a sync up to four times. */
export function failedTries(steps: readonly Step[], step: Step): number {
  return steps.filter((one) => one.outcome === "failed" && isSame(one, step)).length;
}

/** The names by which Skaffold's output refers to its phases. */
const tasks: ReadonlyMap<string, RegExp> = new Map(
  Object.entries({
    init: /^DevLoop/,
    build: /^Build/,
    test: /^Test/,
    render: /^Render/,
    deploy: /^Deploy/,
    verify: /^Verify/,
    exec: /^Exec/,
    check: /^(StatusCheck|Deploy)/,
    sync: /^(Sync|DevLoop)/,
  }),
);

export type LogText = { readonly text: string; readonly task: string; readonly subtask: string };

/** The output of a step, or all output for upstreams that do not attribute it. */
export function logOf(texts: readonly LogText[], step: Pick<Step, "kind" | "subject"> | undefined): string {
  const task = step === undefined ? undefined : tasks.get(step.kind);
  const isMarked = texts.some((one) => one.task !== "");
  const own =
    task === undefined || !isMarked
      ? texts
      : texts.filter((one) => task.test(one.task) && (step?.kind !== "build" || isOf(one, step.subject)));
  return (own.length > 0 ? own : texts).map(({ text }) => text).join("");
}

function isOf({ subtask }: LogText, artifact: string): boolean {
  return subtask === artifact;
}

/** Whether a line of output looks like an error. A count of none, as in "0 failed", is no error. */
export function isErrorLine(line: string): boolean {
  return /\b(error|fatal|panic|failed|cannot)\b/i.test(line.replace(/\b(0|no) (errors?|failed)\b/gi, ""));
}

/** The line of a log to begin at: the first that looks like the error. */
export function errorLine(lines: readonly string[], error: string): number {
  const first = lines.findIndex(isErrorLine);
  if (first >= 0) return first;
  const firstLine = error.split("\n")[0]?.trim() ?? "";
  const same = firstLine === "" ? -1 : lines.findIndex((line) => line.includes(firstLine));
  return same >= 0 ? same : Math.max(0, lines.length - 1);
}

/** Times for the ticks of an axis: steps of 1, 2 or 5, of whole milliseconds as they are written. */
export function ticksOf(lengthMs: number, max: number): readonly number[] {
  if (lengthMs <= 0) return [0];
  const least = Math.max(1, lengthMs / max);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) ?? 10 * power;
  return Array.from({ length: Math.floor(lengthMs / step) + 1 }, (_, index) => index * step);
}

/** The texts at the top of a failed loop: the first is its headline. Empty if nothing is known. */
export function failureTexts(error: string, code: string, output: string): readonly string[] {
  const printed = linesOf(output).map((line) => line.trim());
  const [first = "", ...others] = linesOf(error);
  const own = first.trim();
  const firstError = printed.find(isErrorLine);
  // The output stands below, so its texts are not repeated.
  const known = new Set(printed);
  const more = others.filter((line) => !known.has(line.trim()));
  if (firstError === undefined || firstError === own || !isGenericFailure(own, code))
    return [own, ...more].filter((text) => text !== "");
  return [withoutPrefix(firstError), known.has(own) ? "" : own, ...more].filter((text) => text !== "");
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trimEnd()]));
}

/** "kubectl apply: exit status 1" and "BUILD_USER_ERROR" leave open why. */
function isGenericFailure(text: string, code: string): boolean {
  const patterns = [
    /\bexit(ed)?( with)?( status| code)?:? -?\d+\.?$/i,
    /^\d+\/\d+ deployment\(s\) failed$/,
    /^[A-Z0-9_]+$/,
  ];
  return text === "" || text === code || patterns.some((pattern) => pattern.test(text));
}

function withoutPrefix(line: string): string {
  return line.replace(/^[-*]\s+/, "").replace(/^(error|fatal|panic):\s+(?=\S)/i, "");
}
