import type { Operation, TapedeckEvent } from "../index.ts";
import { isPossible } from "./lasted.ts";
import { firstFailure } from "./loop.ts";
import { changeOf, foldSteps, isSame, type Loop, type Step, stepKinds, stepOfEvent, stepOfOperation } from "./step.ts";

const phases: readonly string[] = stepKinds;

/** Whether an operation is a step that belongs to no loop: `skaffold build` has no loops, nor has a Skaffold before v1. */
export function isOutsideLoops({ kind, loop }: { readonly kind: string; readonly loop?: number | undefined }): boolean {
  return phases.includes(kind) && (loop ?? 0) === 0;
}

type Run = Pick<Loop, "session" | "runner">;

/** The loops after an event of a step outside of them: it continues a round of its runner, or begins another. */
export function foldRounds(loops: readonly Loop[], event: TapedeckEvent): readonly Loop[] {
  const change = changeOf(event);
  if (change === undefined) return loops;
  const step = stepOfEvent(event);
  const run = { session: event.session ?? "", runner: event.operation?.runner ?? 0 };
  const isOpen = (known: Step) => known.endedAt === undefined && isSame(known, step);
  const open = change === "end" ? loops.findLastIndex((one) => isOf(one, run) && one.steps.some(isOpen)) : -1;
  const at = open < 0 ? roundFor(loops, run, step) : open;
  const round = loops[at];
  if (round !== undefined) return loops.with(at, roundOf(foldSteps(round.steps, event), run));
  return withRound(loops, roundOf(foldSteps([], event), run));
}

/** The rounds of operations in the order of their starts. */
export function roundsOf(operations: readonly Operation[]): readonly Loop[] {
  let rounds: readonly Loop[] = [];
  for (const operation of operations) {
    if (!isOutsideLoops(operation)) continue;
    const step = stepOfOperation(operation);
    const at = roundFor(rounds, operation, step);
    const round = rounds[at];
    if (round === undefined) rounds = withRound(rounds, roundOf([step], operation));
    else rounds = rounds.with(at, roundOf([...round.steps, step], operation));
  }
  return rounds;
}

function isOf(loop: Loop, { session, runner }: Run): boolean {
  return loop.kind === "round" && loop.session === session && loop.runner === runner;
}

/**
 * The index of the round that a step belongs to by its time, or -1. Steps may come late: Skaffold has two streams, and a short
 * command has ended before both were read.
 */
function roundFor(loops: readonly Loop[], run: Run, step: Step): number {
  const newest = loops.findLastIndex((one) => isOf(one, run));
  if (isTooEarly(step, loops[newest])) {
    const now = { ...step, startedAt: Number.POSITIVE_INFINITY };
    return loops[newest] !== undefined && continues(loops[newest], now) ? newest : -1;
  }
  const before = loops.findLastIndex((one) => isOf(one, run) && one.startedAt <= step.startedAt);
  const after = loops.findIndex((one, at) => at > before && isOf(one, run));
  return [before, after].find((at) => loops[at] !== undefined && continues(loops[at], step)) ?? -1;
}

/** Nothing comes so late. Where a clock was set back, the order of arrival counts. */
const maxLateMs = 60_000;

function isTooEarly({ startedAt }: Step, newest: Loop | undefined): boolean {
  return newest !== undefined && newest.startedAt - startedAt > maxLateMs;
}

function withRound(loops: readonly Loop[], round: Loop): readonly Loop[] {
  if (
    isTooEarly(
      round,
      loops.findLast((one) => isOf(one, round)),
    )
  )
    return [...loops, round];
  const later = loops.findIndex((one) => isOf(one, round) && one.startedAt > round.startedAt);
  return later < 0 ? [...loops, round] : loops.toSpliced(later, 0, round);
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
  return steps.every((known) => {
    if (isSame(known, step)) return false;
    const knownPhase = phases.indexOf(known.kind);
    return known.startedAt < step.startedAt
      ? knownPhase <= phase
      : known.startedAt === step.startedAt || knownPhase >= phase;
  });
}

/** The round with its steps in another state. */
export function foldedRound({ session, runner }: Run, steps: readonly Step[]): Loop {
  return roundOf(steps, { session, runner });
}

/** Steps that follow each other, as if they were a loop. It lasts until its last step has ended. */
export function roundOf(unordered: readonly Step[], { session, runner }: Run): Loop {
  const steps = unordered.toSorted((one, other) => one.startedAt - other.startedAt);
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
    startedAt: (steps.find(({ startedAt }) => isPossible(startedAt)) ?? steps[0])?.startedAt ?? 0,
    endedAt: isOpen ? undefined : Math.max(...ends.map(({ endedAt }) => endedAt)),
    isUntimed: steps.some(({ isUntimed }) => isUntimed),
    outcome: isOpen ? undefined : outcomeOf(steps),
    error: failure?.error ?? "",
    cause: failure === undefined ? null : failure.cause,
    errorCode: failure?.errorCode ?? "",
    position: steps.map(({ position }) => position).toSorted()[0] ?? "",
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
