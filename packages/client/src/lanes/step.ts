import type { Operation, Outcome, TapedeckEvent } from "../index.ts";
import { millis } from "./format.ts";

/** Something with a start and an end, as the page draws it: a build, a deploy, a command. */
export type Step = {
  readonly kind: string;
  readonly subject: string;
  readonly instance: string;
  readonly startedAt: number;
  /** Undefined while it runs. */
  readonly endedAt: number | undefined;
  readonly outcome: Outcome | undefined;
  readonly error: string;
  readonly errorCode: string;
  readonly isCached: boolean;
  readonly position: string;
  readonly endPosition: string | undefined;
};

/** A dev loop, or a command of Vagrant or a round of steps outside of loops, which are shown in the same way. */
export type Loop = Step & {
  readonly session: string;
  readonly runner: number;
  readonly loop: number;
  /** In the order of their starts. */
  readonly steps: readonly Step[];
};

/** Milliseconds, of a step that runs until now. */
export function lengthOf({ startedAt, endedAt }: Pick<Step, "startedAt" | "endedAt">, now: number): number {
  return Math.max(0, (endedAt ?? now) - startedAt);
}

export function stepText({ kind, subject, instance }: Pick<Step, "kind" | "subject" | "instance">): string {
  if (kind === "command") return `vagrant ${subject}`;
  if (kind === "round") return subject;
  const name = subject === "" ? instance : subject;
  return name === "" ? kind : `${kind} ${name}`;
}

export function stepOfOperation(operation: Operation): Step {
  return {
    kind: operation.kind,
    subject: operation.subject,
    instance: operation.instance,
    startedAt: millis(operation.startedAt) ?? millis(operation.endedAt) ?? 0,
    endedAt: operation.outcome === null ? undefined : (millis(operation.endedAt) ?? millis(operation.startedAt) ?? 0),
    outcome: operation.outcome ?? undefined,
    error: operation.error,
    errorCode: operation.errorCode,
    isCached: operation.cacheHit,
    position: operation.startPosition,
    endPosition: operation.endPosition ?? undefined,
  };
}

export function loopOfOperation(operation: Operation): Loop {
  const { session, runner, loop } = operation;
  return { ...stepOfOperation(operation), session, runner, loop, steps: [] };
}

export function timeOf({ occurredAt, recordedAt }: Pick<TapedeckEvent, "occurredAt" | "recordedAt">): number {
  return millis(occurredAt) ?? millis(recordedAt) ?? 0;
}

const begins: ReadonlySet<string> = new Set(["started"]);
const outcomes: ReadonlyMap<string, Outcome> = new Map(
  Object.entries({
    succeeded: "succeeded",
    failed: "failed",
    canceled: "canceled",
    cached: "succeeded",
  }),
);

/** Whether an event starts or ends an operation of its kind. */
export function changeOf(event: TapedeckEvent): "start" | "end" | undefined {
  const [noun, verb = ""] = event.kind.split(".");
  if (event.operation?.kind !== noun) return undefined;
  if (begins.has(verb)) return "start";
  if (noun === "command" && verb === "finished") return "end";
  return !outcomes.has(verb) ? undefined : "end";
}

export function stepOfEvent(event: TapedeckEvent): Step {
  const { subject = "", instance = "" } = event.operation ?? {};
  return {
    kind: event.operation?.kind ?? "",
    subject,
    instance,
    startedAt: timeOf(event),
    endedAt: undefined,
    outcome: undefined,
    error: "",
    errorCode: "",
    isCached: false,
    position: event.position,
    endPosition: undefined,
  };
}

export function endedBy<Kind extends Step>(step: Kind, event: TapedeckEvent): Kind {
  const verb = event.kind.split(".")[1] ?? "";
  return {
    ...step,
    endedAt: Math.max(timeOf(event), step.startedAt),
    outcome: event.outcome ?? outcomes.get(verb) ?? "unknown",
    error: event.error?.message ?? "",
    errorCode: event.error?.code ?? "",
    isCached: verb === "cached",
    endPosition: event.position,
  };
}

/** The steps after an event: one more, or one that has ended. */
export function foldSteps(steps: readonly Step[], event: TapedeckEvent): readonly Step[] {
  const change = changeOf(event);
  if (change === undefined) return steps;
  const step = stepOfEvent(event);
  if (change === "start") return [...steps, step];
  const open = steps.findLastIndex((known) => known.endedAt === undefined && isSame(known, step));
  return open < 0 ? [...steps, endedBy(step, event)] : steps.with(open, endedBy(steps[open] ?? step, event));
}

/** Whether both are the same work, which may be done again. */
export function isSame(one: Step, other: Step): boolean {
  return one.kind === other.kind && one.subject === other.subject && one.instance === other.instance;
}
