import type {
  BuildSubtaskEvent,
  CloudRunReadyEvent,
  SkaffoldLogEvent,
  TaskEvent,
} from "@tapedeck/proto/skaffold/v2/skaffold";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Event, OperationRef } from "@tapedeck/proto/tapedeck/v1/event";
import { ownValue } from "@tapedeck/shared/own-value";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";
import { rememberV2, startOfV2, type V2Memory } from "@tapedeck/tap/skaffold/runners";
import type { Fact } from "../fact.ts";
import { canceled, failed, failure, firstLine, message, name, succeeded, summary, text, unreadable } from "../facts.ts";
import { type ActionableErr, errorOf, laterType, levelName, loopRef, mirror } from "./facts.ts";
import type { ChannelReader } from "./frame-reader.ts";
import { isEndedBySkaffold } from "./loop-steps.ts";
import { failedPhase, type Phase } from "./phases.ts";

type V2EventType = NonNullable<V2Event["event_type"]>;

/** `failureKnown`: Skaffold has reported a failure of the current task, or of a step of it. An injected event reports none. */
type Memory = V2Memory & { readonly failureKnown: boolean };

/**
 * v2 is the voice for what v1 leaves out: rendering, cache hits, verify, exec, Cloud Run, phases that fail without a step
 * that does, and what is printed. All else is a mirror of v1.
 */
export const v2: ChannelReader<Memory> = {
  start: { ...startOfV2, failureKnown: false },
  read(memory, bytes, injected) {
    try {
      const event = V2Event.decode(bytes);
      const eventType = event.event_type;
      const failureKnown = injected ? memory.failureKnown : isFailureKnown(memory.failureKnown, eventType);
      const next = { ...rememberV2(memory, eventType), failureKnown };
      const fact =
        eventType === undefined
          ? mirror(laterType(event))
          : (factOf(eventType, next, memory.failureKnown) ?? mirrorOf(eventType));
      const occurredAt = validTimestamp(event.timestamp);
      const operation = fact.operation ?? loopRef(next.runner, next.loop);
      return { memory: next, fact: { ...fact, operation, ...(occurredAt && { occurredAt }) } };
    } catch (cause) {
      const next = { ...memory, loopJustStarted: false };
      return { memory: next, fact: { ...unreadable(bytes, cause), operation: loopRef(memory.runner, memory.loop) } };
    }
  },
  resume,
};

/** Undefined: the event is a mirror. */
function factOf(eventType: V2EventType, memory: V2Memory, failureKnown: boolean): Fact | undefined {
  switch (eventType.$case) {
    case "skaffoldLogEvent":
      return log(eventType.value);
    case "taskEvent":
      return (
        render(eventType.value, { kind: "render", subject: "", runner: memory.runner, loop: memory.loop }) ??
        (failureKnown ? undefined : failedTask(eventType.value, memory))
      );
    case "buildSubtaskEvent":
      return cached(eventType.value, memory);
    case "verifyEvent":
      return task("verify", eventType.value, memory, failureKnown);
    case "execEvent":
      return task("exec", eventType.value, memory, failureKnown);
    case "cloudRunReadyEvent":
      return cloudRun(eventType.value);
    default:
      return undefined;
  }
}

function log({ message: printed, level, task_id, subtask_id }: SkaffoldLogEvent): Fact {
  const subtask = subtask_id === "-1" ? "" : name(subtask_id);
  return {
    kind: "log.written",
    // Artifacts and resources have names; testers and deployers only numbers.
    ...(/^\d*$/.test(subtask) ? {} : { subject: subtask }),
    summary: summary(firstLine(printed)),
    detail: {
      $case: "text",
      value: {
        text: text(printed),
        level: levelName(level),
        task: name(task_id),
        subtask,
        pod: "",
        container: "",
        noise: printed === "",
      },
    },
  };
}

/**
 * The phase as a whole, not its renderEvents, of which there is one per renderer: so one operation per render, also
 * when nothing or many things are rendered.
 */
function render({ id, task, status, actionableErr }: TaskEvent, own: OperationRef): Fact | undefined {
  if (task !== "Render") return undefined;
  const texts = { what: "render", done: "manifests rendered" };
  return outcome("render", { id: "", task_id: id, status, actionableErr }, own, texts);
}

/**
 * One test of `skaffold verify` or one action of `skaffold exec`. When another one has failed, Skaffold ends those that
 * run, and may report them as Failed, too ("context canceled").
 */
function task(
  noun: "verify" | "exec",
  event: Subtask,
  { runner, loop }: V2Memory,
  failureKnown: boolean,
): Fact | undefined {
  const subject = name(event.id);
  const isEnded = failureKnown && event.status === "Failed" && isEndedBySkaffold(errorOf(event.actionableErr));
  const what = `${noun} of ${subject || "all"}`;
  const reported = isEnded ? { ...event, status: "Canceled" } : event;
  return outcome(noun, reported, { kind: noun, subject, runner, loop }, { what, done: `${what} succeeded` });
}

const phases: Readonly<Record<string, Phase>> = { Build: "build", Test: "test", Deploy: "deploy" };

/**
 * A task failed as a whole and no step of it did, for example because an image could not be pulled or a tag could not be
 * generated. v1 does not report that.
 */
function failedTask({ id, task: name, status, actionableErr }: TaskEvent, memory: V2Memory): Fact | undefined {
  if (status !== "Failed") return undefined;
  const noun = name === "Verify" ? "verify" : name === "Exec" ? "exec" : undefined;
  if (noun !== undefined) return task(noun, { id: "", task_id: id, status, actionableErr }, memory, false);
  const phase = ownValue(phases, name);
  return phase && failedPhase(phase, errorOf(actionableErr), memory, id);
}

function isFailureKnown(before: boolean, event: V2EventType | undefined): boolean {
  switch (event?.$case) {
    case "taskEvent":
      return event.value.status === "InProgress" ? false : before || event.value.status === "Failed";
    case "buildSubtaskEvent":
      // What is not found in the cache is "Failed", too.
      return before || (event.value.step === "Build" && isBad(event.value.status));
    case "testEvent":
    case "deploySubtaskEvent":
      return before || isBad(event.value.status);
    case "verifyEvent":
    case "execEvent":
      return before || event.value.status === "Failed";
    default:
      return before;
  }
}

function isBad(status: string): boolean {
  return status === "Failed" || status === "Canceled";
}

type Subtask = {
  readonly id: string;
  readonly task_id: string;
  readonly status: string;
  readonly actionableErr?: ActionableErr | undefined;
};

function outcome(
  noun: "render" | "verify" | "exec",
  { task_id, status, actionableErr }: Subtask,
  own: OperationRef,
  { what, done }: { readonly what: string; readonly done: string },
): Fact | undefined {
  const error = errorOf(actionableErr);
  const rest = {
    ...(own.subject && { subject: own.subject }),
    operation: own,
    detail: { $case: "phase", value: { name: own.subject || noun, task_id: name(task_id), status: name(status) } },
  } as const;
  switch (status) {
    case "InProgress":
      return { kind: `${noun}.started`, summary: summary(`${what} started`), ...rest };
    case "Succeeded":
      return { kind: `${noun}.succeeded`, ...succeeded, summary: summary(done), ...rest };
    case "Failed":
      return { kind: `${noun}.failed`, ...failed(error), summary: failure(what, error), ...rest };
    case "Canceled":
      return { kind: `${noun}.canceled`, ...canceled, summary: summary(`${what} canceled`), ...rest };
    default:
      return undefined;
  }
}

/** An artifact that was found in the cache: v1 never mentions that build. Not found ("Failed") is no failure. */
function cached(event: BuildSubtaskEvent, { runner, loop }: V2Memory): Fact | undefined {
  if (event.step !== "Cache" || event.status !== "Succeeded") return undefined;
  const subject = name(event.artifact);
  return {
    kind: "build.cached",
    subject,
    ...succeeded,
    summary: summary(`${subject} found in the cache`),
    operation: { kind: "build", subject, runner, loop },
    detail: {
      $case: "build",
      value: {
        artifact: subject,
        host_platform: name(event.hostPlatform),
        target_platforms: name(event.targetPlatforms),
        cache_hit: true,
      },
    },
  };
}

function cloudRun({ resource, url, ready_revision }: CloudRunReadyEvent): Fact {
  const subject = name(resource);
  return {
    kind: "resource.ready",
    subject,
    ...succeeded,
    summary: summary(`${subject} is ready${url && ` at ${url}`}`),
    detail: {
      $case: "resource",
      value: { resource: subject, status: "", message: message(ready_revision), url: name(url) },
    },
  };
}

function mirrorOf(eventType: V2EventType): Fact {
  const string = (field: string) => {
    const value: unknown = Reflect.get(eventType.value, field);
    return typeof value === "string" ? value : "";
  };
  const isTask = eventType.$case === "taskEvent";
  return mirror(eventType.$case, {
    status: string("status"),
    task_id: string(isTask ? "id" : "task_id"),
    subtask_id: isTask ? "" : string("id"),
  });
}

function resume(memory: Memory, event: Event): Memory {
  const { runner, loop } = event.operation ?? memory;
  const mirrored = event.detail?.$case === "mirror" ? event.detail.value : undefined;
  return {
    runner,
    loop,
    runId: mirrored?.what === "metaEvent" ? runIdOf(event, runner === memory.runner ? memory.runId : "") : memory.runId,
    // No other event moves the loop forward.
    loopJustStarted: mirrored?.what === "taskEvent" && runner === memory.runner && loop > memory.loop,
    failureKnown: event.injected ? memory.failureKnown : resumedFailure(memory.failureKnown, event),
  };
}

function resumedFailure(before: boolean, event: Event): boolean {
  const { kind, detail } = event;
  // The end of a task as a whole, or a failed action.
  if (/^(?:build|test|render|deploy)\.(?:failed|canceled)$|^(?:verify|exec)\.failed$/.test(kind)) return true;
  const { what = "", status = "" } = detail?.$case === "mirror" ? detail.value : {};
  // Rendering's start is no mirror.
  if (kind === "render.started" || (what === "taskEvent" && status === "InProgress")) return false;
  switch (what) {
    case "taskEvent":
      return before || status === "Failed";
    case "buildSubtaskEvent": {
      const step = originalOf(event);
      // Without an original a miss of the cache looks the same. Only a failure of all builds together may be left out.
      return before || (isBad(status) && (step?.$case !== "buildSubtaskEvent" || step.value.step === "Build"));
    }
    case "testEvent":
    case "deploySubtaskEvent":
      return before || isBad(status);
    default:
      return before;
  }
}

/** Without it (no original) the position right after a loop's start shows which metaEvents are repeats. */
function runIdOf(event: Event, before: string): string {
  const eventType = originalOf(event);
  return (eventType?.$case === "metaEvent" && eventType.value.metadata?.runID) || before;
}

function originalOf({ original }: Event): V2EventType | undefined {
  try {
    return V2Event.decode(original?.bytes ?? new Uint8Array()).event_type;
  } catch {
    return undefined;
  }
}
