import { isSame, type Step } from "./step.ts";

/** The failed step that ended first: what failed after it followed from it. A step that succeeded when tried again is none. */
export function firstFailure(steps: readonly Step[]): Step | undefined {
  const failed = steps.filter((step) => step.outcome === "failed" && step.kind !== "loop" && isFailing(steps, step));
  return failed.toSorted(
    (a, b) =>
      Number(wasStopped(a)) - Number(wasStopped(b)) || (a.endedAt ?? 0) - (b.endedAt ?? 0) || b.startedAt - a.startedAt,
  )[0];
}

/** Skaffold ends the other builds when one fails. */
function wasStopped({ cause }: Step): boolean {
  return cause?.reason === "cancelled";
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
  const own = step === undefined ? texts : texts.filter((one) => isPrintedBy(one, step));
  return (own.length > 0 ? own : texts).map(({ text }) => text).join("");
}

/** Whether a step printed the text. Steps that Skaffold's output does not refer to have none. */
export function isPrintedBy(
  { task, subtask }: Omit<LogText, "text">,
  { kind, subject }: Pick<Step, "kind" | "subject">,
): boolean {
  return (tasks.get(kind)?.test(task) ?? false) && (kind !== "build" || subtask === subject);
}

/** Whether a line of output looks like an error. A count of none, as in "0 failed", is no error. */
export function isErrorLine(line: string): boolean {
  return /\b(error|fatal|panic|failed|cannot)\b/i.test(line.replace(/\b(0|no) (errors?|failed)\b/gi, ""));
}

/** The line of a log that is the cause; -1: none is. Lines have no colours. */
export function lineOfCause(lines: readonly string[], cause: string): number {
  const target = spaced(cause);
  if (target === "") return -1;
  const same = lines.findIndex((line) => spaced(line) === target);
  return same >= 0 ? same : lines.findIndex((line) => spaced(line).includes(target));
}

/** Tools quote the output of others: \"web\". */
function spaced(text: string): string {
  return text.replaceAll('\\"', '"').replace(/\s+/g, " ").trim();
}

/** Times for the ticks of an axis: steps of 1, 2 or 5, of whole milliseconds as they are written. */
export function ticksOf(lengthMs: number, max: number): readonly number[] {
  if (lengthMs <= 0) return [0];
  const least = Math.max(1, lengthMs / max);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) ?? 10 * power;
  return Array.from({ length: Math.floor(lengthMs / step) + 1 }, (_, index) => index * step);
}
