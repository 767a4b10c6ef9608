/** What Skaffold does in a loop, one after the other; a check runs inside its deploy, and builds run beside each other. */
export const phases = ["sync", "build", "test", "render", "deploy", "check"] as const;
/** A phase of a loop. */
export type LoopPhase = (typeof phases)[number];

/** An operation of a loop, in nanoseconds since the loop began. */
export type LoopSpan = {
  readonly phase: LoopPhase;
  readonly subject: string;
  readonly from: number;
  readonly to: number;
};

/** A wait of the loop between two moments, in whole milliseconds since it began. */
export type Wait = {
  readonly phase: LoopPhase | "other";
  readonly subject: string;
  readonly from_ms: number;
  readonly to_ms: number;
};

/**
 * Gives each moment of a loop to the one operation that the loop waited for, so that the waits add up to the loop. A
 * check comes before the deploy around it. If builds run at the same time, it is the one on the critical path: the
 * build that ended last, before it the last one to end until that began, and so on. Moments without an operation are
 * "other".
 */
export function waitsOf(length: number, spans: readonly LoopSpan[]): readonly Wait[] {
  const inside = spans
    .map((span) => ({ ...span, from: Math.max(0, span.from), to: Math.min(length, span.to) }))
    .filter(({ from, to }) => to > from);
  const path = new Set(criticalPath(inside.filter(({ phase }) => phase === "build")));
  const edges = [...new Set([0, length, ...inside.flatMap(({ from, to }) => [from, to])])].toSorted((a, b) => a - b);
  const waits: Wait[] = [];
  for (const [index, from] of edges.entries()) {
    const to = edges[index + 1];
    if (to === undefined) break;
    const running = inside.filter((span) => span.from <= from && span.to >= to);
    const { phase, subject } = running.reduce<Running>((a, b) => (isBefore(b, a, path) ? b : a), other);
    const last = waits.at(-1);
    const to_ms = wholeMs(to);
    if (last?.phase === phase && last.subject === subject) waits[waits.length - 1] = { ...last, to_ms };
    else waits.push({ phase, subject, from_ms: wholeMs(from), to_ms });
  }
  return waits.filter(({ from_ms, to_ms }) => to_ms > from_ms);
}

const other = { phase: "other", subject: "", from: 0, to: 0 } as const;
type Running = LoopSpan | typeof other;

/** Whether the loop waits rather for the first of two that run. */
function isBefore(a: LoopSpan, b: Running, path: ReadonlySet<LoopSpan>): boolean {
  if (b.phase === "other") return true;
  if (a.phase !== b.phase) return phases.indexOf(a.phase) > phases.indexOf(b.phase);
  if (path.has(a) !== path.has(b)) return path.has(a);
  return a.to > b.to;
}

function criticalPath(builds: readonly LoopSpan[]): readonly LoopSpan[] {
  const path: LoopSpan[] = [];
  for (let until = Number.POSITIVE_INFINITY; ; ) {
    const before = builds.filter(({ to }) => to <= until);
    const last = before.reduce<LoopSpan | undefined>((a, b) => (a === undefined || b.to > a.to ? b : a), undefined);
    if (last === undefined) return path;
    path.push(last);
    until = last.from;
  }
}

/** Rounded down, as all durations are. Lengths between rounded moments add up. */
function wholeMs(ns: number): number {
  return Math.floor(ns / 1_000_000);
}
