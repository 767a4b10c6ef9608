import type { Operation, TapedeckEvent } from "../index.ts";
import { firstFailure } from "./loop.ts";
import { changeOf, foldSteps, isSame, type Loop, type Step, stepOfEvent, stepOfOperation } from "./step.ts";

/** In the order in which Skaffold runs them. */
const phases: readonly string[] = ["init", "sync", "build", "test", "render", "deploy", "check", "verify", "exec"];

/** Whether an operation is a step that belongs to no loop: `skaffold build` has no loops, nor has a Skaffold before v1. */
export function isOutsideLoops({ kind, loop }: { readonly kind: string; readonly loop?: number | undefined }): boolean {
  return phases.includes(kind) && (loop ?? 0) === 0;
}

type Run = Pick<Loop, "session" | "runner">;

/** The loops after an event of a step outside of them: it continues the last round of its runner, or begins the next. */
export function foldRounds(loops: readonly Loop[], event: TapedeckEvent): readonly Loop[] {
  const change = changeOf(event);
  if (change === undefined) return loops;
  const step = stepOfEvent(event);
  const run = { session: event.session ?? "", runner: event.operation?.runner ?? 0 };
  const at = lastRound(loops, run);
  const round = loops[at];
  const isKnown = round?.steps.some((known) => known.endedAt === undefined && isSame(known, step));
  if (round !== undefined && ((change === "end" && isKnown) || continues(round, step)))
    return loops.with(at, roundOf(foldSteps(round.steps, event), run));
  return [...loops, roundOf(foldSteps([], event), run)];
}

/** The rounds of operations in the order of their starts. */
export function roundsOf(operations: readonly Operation[]): readonly Loop[] {
  const rounds: Loop[] = [];
  for (const operation of operations) {
    if (!isOutsideLoops(operation)) continue;
    const step = stepOfOperation(operation);
    const at = lastRound(rounds, operation);
    const round = rounds[at];
    if (round !== undefined && continues(round, step)) rounds[at] = roundOf([...round.steps, step], operation);
    else rounds.push(roundOf([step], operation));
  }
  return rounds;
}

function lastRound(loops: readonly Loop[], { session, runner }: Run): number {
  return loops.findLastIndex((one) => one.kind === "round" && one.session === session && one.runner === runner);
}

/** A step that begins so soon after a failure follows from it, as in the statistics of failures. */
const consequenceMs = 500;

/**
 * Whether a step that begins belongs to the round. The same step again, or an earlier phase, is the next round, and so is
 * what begins when a round has failed: only what was changed is built again.
 */
function continues(round: Loop, step: Step): boolean {
  const { steps, outcome, endedAt = step.startedAt } = round;
  if (outcome === "failed" && step.startedAt - endedAt >= consequenceMs) return false;
  const phase = phases.indexOf(step.kind);
  return steps.every((known) => phases.indexOf(known.kind) <= phase && !isSame(known, step));
}

/** Steps that follow each other, as if they were a loop. It lasts until its last step has ended. */
export function roundOf(steps: readonly Step[], { session, runner }: Run): Loop {
  const isOpen = steps.some(({ endedAt }) => endedAt === undefined);
  const ends = steps.flatMap(({ endedAt = 0, endPosition = "" }) => [{ endedAt, endPosition }]);
  const failure = firstFailure(steps);
  return {
    kind: "round",
    subject: [...new Set(steps.map(({ kind }) => kind))].join(", "),
    instance: "",
    session,
    runner,
    loop: 0,
    steps,
    isCached: false,
    startedAt: Math.min(...steps.map(({ startedAt }) => startedAt)),
    endedAt: isOpen ? undefined : Math.max(...ends.map(({ endedAt }) => endedAt)),
    isUntimed: steps.some(({ isUntimed }) => isUntimed),
    outcome: isOpen ? undefined : outcomeOf(steps),
    error: failure?.error ?? "",
    errorCode: failure?.errorCode ?? "",
    position: steps[0]?.position ?? "",
    endPosition: isOpen
      ? undefined
      : ends
          .map(({ endPosition }) => endPosition)
          .toSorted()
          .at(-1),
  };
}

function outcomeOf(steps: readonly Step[]): Step["outcome"] {
  const outcomes = ["failed", "unknown", "canceled"] as const;
  return outcomes.find((outcome) => steps.some((step) => step.outcome === outcome)) ?? "succeeded";
}
