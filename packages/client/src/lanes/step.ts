import type { Cause, Operation, Outcome, TapedeckEvent } from "../index.ts";
import { durationText, millis, unknownTime } from "./format.ts";
import { isPossible, lastedMs } from "./lasted.ts";

/** The steps of Skaffold, in the order in which it runs them. */
export const stepKinds = ["init", "sync", "build", "test", "render", "deploy", "check", "verify", "exec"] as const;

/** Something with a start and an end, as the page draws it: a build, a deploy, a command. */
export type Step = {
  readonly kind: string;
  readonly subject: string;
  readonly instance: string;
  readonly startedAt: number;
  /** Undefined while it runs. */
  readonly endedAt: number | undefined;
  /** One of its times is unknown or can't be right: it has no length, and is drawn at one moment. */
  readonly isUntimed: boolean;
  readonly outcome: Outcome | undefined;
  readonly error: string;
  /** Why it failed. Null: it did not, or nobody knows; undefined: it is not read yet. */
  readonly cause: Cause | null | undefined;
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

type Timed = Pick<Step, "kind" | "startedAt" | "endedAt" | "isUntimed">;

/** Milliseconds; of a running step until now. Undefined: not known. */
export function lengthOf({ kind, startedAt, endedAt, isUntimed }: Timed, now: number): number | undefined {
  return isUntimed ? undefined : lastedMs(startedAt, endedAt ?? now, kind);
}

/** "2.3 s", "unknown time" */
export function lengthText(step: Timed, now: number): string {
  const ms = lengthOf(step, now);
  return ms === undefined ? unknownTime : durationText(ms);
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
    ...timesOf(operation),
    outcome: operation.outcome ?? undefined,
    error: operation.error,
    cause: operation.cause,
    errorCode: operation.errorCode,
    isCached: operation.cacheHit,
    position: operation.startPosition,
    endPosition: operation.endPosition ?? undefined,
  };
}

function timesOf(operation: Operation): Pick<Step, "startedAt" | "endedAt" | "isUntimed"> {
  const [start, end] = [millis(operation.startedAt), millis(operation.endedAt)];
  const known = [start, end].find(isPossible) ?? 0;
  if (operation.outcome === null) return { startedAt: known, endedAt: undefined, isUntimed: !isPossible(start) };
  const ms = lastedMs(start, end, operation.kind);
  return { startedAt: known, endedAt: known + (ms ?? 0), isUntimed: ms === undefined };
}

export function loopOfOperation(operation: Operation): Loop {
  const { session, runner, loop } = operation;
  return { ...stepOfOperation(operation), session, runner, loop, steps: [] };
}

/** An upstream whose clock was never set is no guide to when something happened. */
export function timeOf({ occurredAt, recordedAt }: Pick<TapedeckEvent, "occurredAt" | "recordedAt">): number {
  return [millis(occurredAt), millis(recordedAt)].find(isPossible) ?? 0;
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
    isUntimed: !isPossible(millis(event.occurredAt)),
    outcome: undefined,
    error: "",
    cause: undefined,
    errorCode: "",
    isCached: false,
    position: event.position,
    endPosition: undefined,
  };
}

/** A step whose start was not seen. What came from the cache took no time. */
export function endedAtOnce<Kind extends Step>(step: Kind, event: TapedeckEvent): Kind {
  const ended = endedBy(step, event);
  return ended.isCached ? ended : { ...ended, isUntimed: true };
}

export function endedBy<Kind extends Step>(step: Kind, event: TapedeckEvent): Kind {
  const verb = event.kind.split(".")[1] ?? "";
  const ms = step.isUntimed ? undefined : lastedMs(step.startedAt, millis(event.occurredAt), step.kind);
  return {
    ...step,
    endedAt: step.startedAt + (ms ?? 0),
    isUntimed: ms === undefined,
    outcome: event.outcome ?? outcomes.get(verb) ?? "unknown",
    error: event.error?.message ?? "",
    cause: (event.outcome ?? outcomes.get(verb)) === "failed" ? undefined : null,
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
  return open < 0 ? [...steps, endedAtOnce(step, event)] : steps.with(open, endedBy(steps[open] ?? step, event));
}

/** Whether both are the same work, which may be done again. */
export function isSame(one: Step, other: Step): boolean {
  return one.kind === other.kind && one.subject === other.subject && one.instance === other.instance;
}
