import {
  type DevLoopEvent,
  LogEntry,
  type MetaEvent,
  type TerminationEvent,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import { type Event, type OperationRef, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { assertNever } from "@tapedeck/shared/assert-never";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";
import { runnerMadeOnV1 } from "@tapedeck/tap/skaffold/runners";
import type { Fact } from "../fact.ts";
import { failed, failure, firstLine, name, succeeded, summary, unreadable } from "../facts.ts";
import { errorOf, laterType, loopRef, mirror } from "./facts.ts";
import type { ChannelReader } from "./frame-reader.ts";
import { endedBecauseOf, type FailingStep, type LoopSteps, noSteps, stepsAfter } from "./loop-steps.ts";
import { failedPhase, phaseOfCode } from "./phases.ts";
import { build, debug, imageName, phase, port, resource, sync } from "./v1-facts.ts";

/** The part of v1's past that the meaning of its next event depends on. */
export type V1Memory = {
  /** The number of runners so far: 1 after the first metaEvent. */
  readonly runner: number;
  /** The number of dev loops that this runner has started. */
  readonly loop: number;
  /** Skaffold's own number of the loop. */
  readonly iteration: number;
  readonly steps: LoopSteps;
};

export type V1Event = NonNullable<NonNullable<LogEntry["event"]>["event_type"]>;
export type V1Reading = { readonly memory: V1Memory; readonly fact: Fact; readonly cause?: Fact | undefined };

/** The memory before the first event of v1. */
export const startOfV1: V1Memory = { runner: 0, loop: 0, iteration: 0, steps: noSteps };

/** v1 is the primary voice for loops, builds, tests, deploys, checks, resources, syncs, ports and debugging. */
export const v1: ChannelReader<V1Memory> = readerOfV1(false);

/** Reads v1 where v2 is not recorded: nothing else reports a phase that failed as a whole. */
export const v1Alone: ChannelReader<V1Memory> = readerOfV1(true);

function readerOfV1(isAlone: boolean): ChannelReader<V1Memory> {
  return {
    start: startOfV1,
    read(memory, bytes, injected) {
      try {
        const { event, timestamp } = LogEntry.decode(bytes);
        const reading = readEvent(memory, event?.event_type, { later: laterType(event), isAlone });
        return completed(reading, validTimestamp(timestamp), injected);
      } catch (cause) {
        return { memory, fact: { ...unreadable(bytes, cause), operation: loopRef(memory.runner, memory.loop) } };
      }
    },
    resume,
  };
}

type ReadOptions = {
  /** The field of an event that this version doesn't know. */
  readonly later?: string;
  /** Only one of v1 and v2 is recorded. */
  readonly isAlone: boolean;
};

export function readEvent(
  memory: V1Memory,
  event: V1Event | undefined,
  { later = "", isAlone }: ReadOptions,
): V1Reading {
  if (event === undefined) return { memory, fact: mirror(later) };
  if (event.$case === "metaEvent") return meta(memory, event.value);
  if (event.$case === "devLoopEvent") return devLoop(memory, event.value, isAlone);
  if (event.$case === "terminationEvent") return terminated(memory, event.value);
  return { memory, fact: factOf(event, memory) ?? mirror(event.$case, { status: statusOf(event) }) };
}

/** The facts with their time and operation, and the memory with what they report about the loop's steps. */
export function completed(
  { memory, fact, cause }: V1Reading,
  occurredAt: Event["occurred_at"],
  injected: boolean,
): V1Reading {
  const timed = (one: Fact): Fact => ({
    ...one,
    operation: one.operation ?? loopRef(memory.runner, memory.loop),
    ...(occurredAt && { occurredAt }),
  });
  const facts = cause === undefined ? [timed(fact)] : [timed(cause), timed(fact)];
  const after = (known: LoopSteps, one: Fact) => stepsAfter(known, reportOf(one, occurredAt));
  const steps = injected ? memory.steps : facts.reduce(after, memory.steps);
  const next = steps === memory.steps ? memory : { ...memory, steps };
  return { memory: next, fact: timed(fact), cause: cause && timed(cause) };
}

/** The fact of an event that leaves the memory as it is; undefined for an unknown status. */
function factOf(event: V1Event, memory: V1Memory): Fact | undefined {
  switch (event.$case) {
    case "metaEvent":
    case "devLoopEvent":
    case "terminationEvent":
      return undefined;
    case "buildEvent":
      return build(event.value, operation(memory, "build", event.value.artifact), (error) =>
        endedBecauseOf(memory.steps, name(event.value.artifact), error),
      );
    case "TestEvent":
      return phase("test", event.value.status, errorOf(event.value.actionableErr), operation(memory, "test"));
    case "deployEvent": {
      const { status, actionableErr, err, errCode } = event.value;
      return phase("deploy", status, errorOf(actionableErr, err, errCode), operation(memory, "deploy"));
    }
    case "statusCheckEvent": {
      const { status, actionableErr, err, errCode } = event.value;
      return phase("check", status, errorOf(actionableErr, err, errCode), operation(memory, "check"));
    }
    case "resourceStatusCheckEvent":
      return resource(event.value, operation(memory, "check"));
    case "fileSyncEvent":
      return sync(event.value, operation(memory, "sync", imageName(event.value.image)));
    case "portEvent":
      return port(event.value);
    case "debuggingContainerEvent":
      return debug(event.value);
    default:
      return assertNever(event);
  }
}

function meta(memory: V1Memory, { entry, metadata }: MetaEvent): V1Reading {
  const runner = runnerMadeOnV1({ entry, metadata });
  if (runner === undefined) return { memory, fact: mirror("metaEvent") };
  const version = name(runner.version);
  const artifacts = metadata?.build?.numberOfArtifacts;
  const words = [`Skaffold${version && ` ${version}`} read its configuration`];
  if (artifacts !== undefined) words.push(artifacts === 1 ? "1 artifact" : `${artifacts} artifacts`);
  return {
    memory: { runner: memory.runner + 1, loop: 0, iteration: 0, steps: noSteps },
    fact: {
      kind: "session.configured",
      summary: words.join(": "),
      detail: {
        $case: "session_detail",
        value: {
          labels: {},
          redact: "",
          upstream_version: version,
          reason: "",
          fingerprint_channel: "",
          fingerprint_sha256: Buffer.alloc(0),
          states: {},
        },
      },
    },
  };
}

/**
 * A loop can end more than once, and the last end counts: while a sync is tried again each try reports Failed for the
 * same iteration, and if one works, Succeeded follows. Since 2.17 Skaffold also reports Succeeded when all tries have
 * failed, so a loop has succeeded only if no step's last report is a failure. An end of another iteration is not this
 * loop's: it came through Handle.
 */
function devLoop(memory: V1Memory, { status, iteration, err }: DevLoopEvent, isAlone: boolean): V1Reading {
  const next = status === "In Progress" ? { ...memory, loop: memory.loop + 1, iteration, steps: noSteps } : memory;
  const rest = { operation: operation(next, "loop"), detail: { $case: "loop", value: { iteration } } } as const;
  const what = `loop ${next.loop}`;
  if (next !== memory) return { memory: next, fact: { kind: "loop.started", summary: `${what} started`, ...rest } };
  const isItsEnd = memory.loop > 0 && iteration === memory.iteration;
  const [failing] = memory.steps.failing.values();
  if (isItsEnd && status === "Succeeded" && failing !== undefined) {
    return {
      memory,
      fact: { kind: "loop.failed", ...failed(failing.error), summary: failedText(what, failing), ...rest },
    };
  }
  if (isItsEnd && status === "Succeeded") {
    return { memory, fact: { kind: "loop.succeeded", ...succeeded, summary: `${what} succeeded`, ...rest } };
  }
  if (isItsEnd && status === "Failed") {
    const error = errorOf(err);
    const cause = failing === undefined ? phaseOfLoop(memory, error, isAlone) : undefined;
    return { memory, cause, fact: { kind: "loop.failed", ...failed(error), summary: failure(what, error), ...rest } };
  }
  return { memory, fact: mirror("devLoopEvent", { status }) };
}

/**
 * The phase that failed in a loop without a failed step, by the code of the loop's error. Where v2 is recorded too, v2
 * reports these phases, except what the first loop prepares.
 */
function phaseOfLoop(memory: V1Memory, error: Event["error"], isAlone: boolean): Fact | undefined {
  const phase = phaseOfCode(error?.code ?? "");
  return phase === undefined || (!isAlone && phase !== "init") ? undefined : failedPhase(phase, error, memory);
}

/** "loop 2 failed: sync of web in 4 tries: no files were synced" */
function failedText(what: string, { kind, subject, tries, error }: FailingStep): string {
  const step = subject === "" ? kind : `${kind} of ${subject}`;
  const times = tries === 1 ? step : `${step} in ${tries} tries`;
  return summary([`${what} failed`, times, firstLine(error?.message ?? "")].filter(Boolean).join(": "));
}

/** Skaffold sends it only if it can't make a runner. */
function terminated(memory: V1Memory, { status, err }: TerminationEvent): V1Reading {
  const error = errorOf(err);
  const words = ["Skaffold ends", firstLine(error?.message ?? "")].filter(Boolean).join(": ");
  return {
    memory,
    // The failure is outside of loops: a runner that can't be made has no loop.
    cause: status === "Failed" ? failedPhase("init", error, { runner: memory.runner, loop: 0 }) : undefined,
    fact: { kind: "session.terminated", ...(error && { error }), summary: summary(words) },
  };
}

function operation(memory: V1Memory, kind: string, subject = ""): OperationRef {
  return { kind, subject: name(subject), runner: memory.runner, loop: memory.loop };
}

function statusOf(event: V1Event): string {
  return "status" in event.value ? event.value.status : "";
}

function resume(memory: V1Memory, event: Event): V1Memory {
  const { runner, loop } = event.operation ?? memory;
  if (event.kind === "session.configured") return { runner, loop, iteration: 0, steps: noSteps };
  const started = event.kind === "loop.started" ? event.detail : undefined;
  if (started?.$case === "loop") return { runner, loop, iteration: started.value.iteration, steps: noSteps };
  const steps = event.injected ? memory.steps : stepsAfter(memory.steps, reportOf(event, event.occurred_at));
  return { runner, loop, iteration: memory.iteration, steps };
}

function reportOf({ kind, operation, outcome = Outcome.OUTCOME_NONE, error }: Fact | Event, at: Event["occurred_at"]) {
  return { kind, operation, outcome, error, at };
}
