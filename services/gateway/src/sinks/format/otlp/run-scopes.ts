import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Ahead, ReadBackRequest } from "./read-back.ts";
import type { RunKey } from "./trace-ids.ts";

/** The kinds that the operations of each kind of run have. */
export const kindsOf = {
  loop: ["loop", "init", "build", "test", "render", "deploy", "verify", "exec", "check", "sync"],
  session: ["loop", "init", "build", "test", "render", "deploy", "verify", "exec", "check", "sync"],
  command: ["job", "command"],
  pod: ["pod", "app"],
} as const satisfies Record<RunKey["kind"], readonly string[]>;

export type Scope = Pick<ReadBackRequest, "kinds" | "isBeginning" | "ahead" | "isKept" | "needed">;

/** The events that belong to a run, from its beginning on; from that of its session on where the run's own is missing. */
export function scopeOf(run: RunKey, aheadMs: number): Scope {
  return {
    kinds: withSession(kindsOf[run.kind]),
    ...(run.kind === "loop" && { ahead: aheadOf(aheadMs) }),
    isBeginning: (event) => isBeginningOf(run, event) || isSessionStart(run.session, event),
    isKept: (event) => belongsTo(run, event),
  };
}

/** What has happened since the last loop of a session began, or since the session itself did. */
export function lastLoopScope(session: string, aheadMs: number): Scope {
  return {
    kinds: withSession(kindsOf.session),
    ahead: aheadOf(aheadMs),
    isBeginning: (event) =>
      (event.kind === "loop.started" && event.session === session && !event.injected) || isSessionStart(session, event),
    isKept: (event) => event.session === session,
  };
}

function aheadOf(ms: number): Ahead {
  return { ms, isOwn: (one, beginning) => isAhead(one, beginning, ms) };
}

/**
 * Whether an event that is recorded before the start of a loop belongs to it: v1 and v2 are recorded beside each other, and v2 may be the
 * first. Not what is recorded long before.
 */
export function isAhead({ event, recordedAt }: RecordedEvent, beginning: RecordedEvent, aheadMs: number): boolean {
  const run = beginning.event.kind === "loop.started" ? runOf(beginning.event) : undefined;
  if (run === undefined || event.channel === beginning.event.channel || !belongsTo(run, event)) return false;
  return recordedAt.getTime() >= beginning.recordedAt.getTime() - aheadMs;
}

/** All commands, or all runs of pods, of a session. */
export function sessionScope(kind: "command" | "pod", session: string): Scope {
  return {
    kinds: withSession(kindsOf[kind]),
    isBeginning: (event) => isSessionStart(session, event),
    isKept: (event) => event.session === session,
  };
}

/** Whether an event is one of a run's operations. */
export function belongsTo({ kind, session, runner, loop, instance }: RunKey, event: Event): boolean {
  if (event.session !== session) return false;
  switch (kind) {
    case "loop":
      return event.operation?.runner === runner && event.operation.loop === loop;
    case "session":
      return event.operation?.loop === 0;
    case "command":
      return event.subject === instance;
    case "pod":
      return event.subject === instance || event.subject.startsWith(`${instance}/`);
  }
}

/** The job or the pod that an event of a command or a pod belongs to. */
export function instanceOf({ operation, subject }: Event): string {
  const isOfPod = operation?.kind === "pod" || operation?.kind === "app";
  return isOfPod ? (subject.split("/")[0] ?? "") : subject;
}

/** The run that has this event among its operations. */
export function runWith(event: Event): RunKey | undefined {
  const { session, operation, subject } = event;
  if (operation === undefined) return undefined;
  const none = { session, runner: 0, loop: 0, instance: "" };
  switch (operation.kind) {
    case "job":
    case "command":
      return { ...none, kind: "command", instance: subject };
    case "pod":
    case "app":
      return { ...none, kind: "pod", instance: instanceOf(event) };
    default: {
      const { runner, loop } = operation;
      return loop === 0 ? { ...none, kind: "session" } : { ...none, kind: "loop", runner, loop };
    }
  }
}

/** The run that an event is about by its own kind. */
export function runOf(event: Event): RunKey | undefined {
  const { session, operation, subject } = event;
  switch (operation?.kind) {
    case "loop":
      return { kind: "loop", session, runner: operation.runner, loop: operation.loop, instance: "" };
    case "command":
      return { kind: "command", session, runner: 0, loop: 0, instance: operation.instance ?? subject };
    case "pod":
      return { kind: "pod", session, runner: 0, loop: 0, instance: operation.subject };
    default:
      return undefined;
  }
}

/** Whether a run has nothing before this event. */
export function isBeginningOf(run: RunKey, event: Event): boolean {
  if (run.kind === "session") return isSessionStart(run.session, event);
  if (!belongsTo(run, event) || event.injected) return false;
  switch (run.kind) {
    case "loop":
      return event.kind === "loop.started";
    case "command":
      return event.kind === "job.queued";
    case "pod":
      return event.kind === "pod.started";
  }
}

export function endsSession({ kind }: Event): boolean {
  return kind === "session.ended" || kind === "session.lost";
}

export function isSessionStart(session: string, { kind, session: of }: Event): boolean {
  return kind === "session.started" && of === session;
}

function withSession(nouns: readonly string[]): readonly string[] {
  return [...nouns.map((noun) => `${noun}.*`), "session.started"];
}
