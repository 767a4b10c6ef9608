import { isSame, type Step } from "./step.ts";

/** In the order in which Skaffold runs them. A check runs inside its deploy. Other kinds of steps are not waited for. */
const phases: readonly string[] = ["sync", "build", "test", "render", "deploy", "check"];

/** A time in which a loop waited for one of its steps. Milliseconds since 1970. */
export type Wait = { readonly step: Step; readonly from: number; readonly to: number };

type Period = { readonly from: number; readonly to: number };

/**
 * What a loop waited for between `from` and `to`, by the rules of the SQL views: each moment belongs to one step at
 * most. A failed sync lasts until it is tried again. A check comes before the deploy around it. If builds run at the same time, it is the one on the critical path.
 * Steps without an end run until `now`; cached builds took no time. Nobody knows how long steps without right times took.
 */
export function waitsOf(steps: readonly Step[], { from, to, now }: Period & { readonly now: number }): readonly Wait[] {
  const inside = steps
    .filter(({ kind, isCached, isUntimed }) => phases.includes(kind) && !isCached && !isUntimed)
    .map((step) => ({
      step,
      from: Math.max(from, step.startedAt),
      to: Math.min(to, nextTry(steps, step)?.startedAt ?? step.endedAt ?? now),
    }))
    .filter((span) => span.to > span.from);
  const path = new Set(criticalPath(inside.filter(({ step }) => step.kind === "build")));
  const edges = [...new Set(inside.flatMap((span) => [span.from, span.to]))].toSorted((a, b) => a - b);
  const waits: Wait[] = [];
  for (const [index, begin] of edges.entries()) {
    const end = edges[index + 1];
    if (end === undefined) break;
    const running = inside.filter((span) => span.from <= begin && span.to >= end);
    const waited = running.reduce<Wait | undefined>(
      (a, b) => (a === undefined || isBefore(b, a, path) ? b : a),
      undefined,
    );
    if (waited === undefined) continue;
    const last = waits.at(-1);
    if (last?.step === waited.step && last.to === begin) waits[waits.length - 1] = { ...last, to: end };
    else waits.push({ step: waited.step, from: begin, to: end });
  }
  return waits;
}

function nextTry(steps: readonly Step[], step: Step): Step | undefined {
  if (step.kind !== "sync" || step.outcome !== "failed") return undefined;
  return steps.slice(steps.indexOf(step) + 1).find((one) => isSame(one, step));
}

/** Whether the loop waits rather for the first of two that run. */
function isBefore(a: Wait, b: Wait, path: ReadonlySet<Wait>): boolean {
  if (a.step.kind !== b.step.kind) return phases.indexOf(a.step.kind) > phases.indexOf(b.step.kind);
  if (path.has(a) !== path.has(b)) return path.has(a);
  return a.to > b.to;
}

/** The build that ended last, before it the last one to end until that began, and so on. */
function criticalPath(builds: readonly Wait[]): readonly Wait[] {
  const path: Wait[] = [];
  for (let until = Number.POSITIVE_INFINITY; ; ) {
    const before = builds.filter(({ to }) => to <= until);
    const last = before.reduce<Wait | undefined>((a, b) => (a === undefined || b.to > a.to ? b : a), undefined);
    if (last === undefined) return path;
    path.push(last);
    until = last.from;
  }
}

/** For how long a step was waited for, in milliseconds. */
export function waitedFor(step: Step, waits: readonly Wait[]): number {
  return waits.reduce((sum, wait) => (wait.step === step ? sum + wait.to - wait.from : sum), 0);
}
