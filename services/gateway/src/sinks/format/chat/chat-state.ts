import { type Event, Outcome, type PodDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";

/** One message about a source. It is known by the position of the event that it is about. */
export type ChatMessage = {
  readonly id: string;
  readonly type: "failed" | "good";
  readonly source: string;
  /** When its event was recorded. */
  readonly at: number;
  /** What failed or is good, if nothing says more: "loop 7", "vagrant up". */
  readonly what: string;
  /** The event's own error. */
  readonly error: string;
  /** Which operation has the cause. */
  readonly operation: {
    readonly session: string;
    readonly kind: string;
    readonly runner: number;
    readonly loop: number;
  };
  /** On the page. */
  readonly path: string;
  /** Failures that no message has said. */
  readonly more: number;
  /** Milliseconds from the first failure until it was good. */
  readonly redMs?: number | undefined;
};

/** What is known of a source. Times are in milliseconds since 1970. */
export type ChatState = {
  readonly isRed: boolean;
  /** The last message says that it fails. */
  readonly isReportedRed: boolean;
  /** When it failed first since it was good, by the upstream's clock. */
  readonly redSince?: number | undefined;
  readonly unreported: number;
  /** When the event of the last message was recorded. */
  readonly messageAt?: number | undefined;
  /** A message that waits for its turn. */
  readonly held?: ChatMessage | undefined;
  /** The session in which a step outside of loops has failed, and the one in which one has succeeded. */
  readonly failedIn?: string | undefined;
  readonly workedIn?: string | undefined;
  /** The loop that has failed last: "session.runner.loop". */
  readonly failedLoop?: string | undefined;
  /** The commands that have failed and not succeeded since. */
  readonly failedCommands?: readonly string[] | undefined;
};

export const unknownState: ChatState = { isRed: false, isReportedRed: false, unreported: 0 };

/** A held message is stored with the sink's cursor. */
const maxError = 2_000;
/** Commands of a source that are remembered as failed: those that failed last. */
const maxCommands = 20;

/** What was recorded so long after it happened is history, and no news. */
const historyMs = 24 * 3_600_000;
/** No recorded tool is older. A clock that was never set shows 1970. */
const earliestMs = Date.UTC(2000, 0);

const steps = ["init", "build", "test", "render", "deploy", "verify", "exec", "check", "sync"];

/** What decides how a source is. */
export const chatKinds: readonly string[] = [
  ...["loop.succeeded", "loop.failed", "command.finished", "pod.exited"],
  ...steps.flatMap((step) => [`${step}.failed`, `${step}.succeeded`]),
  ...["build.cached", "session.ended", "session.lost", "source.erased"],
];

export type ChatEvent = {
  readonly event: Event;
  readonly position: string;
  /** When it was recorded. */
  readonly at: number;
  /** Between two messages about a source. */
  readonly intervalMs: number;
};

export type Folded = { readonly state: ChatState; readonly message?: ChatMessage | undefined };

/** The state after an event, and the message that is due with it. */
export function foldChat(state: ChatState, one: ChatEvent): Folded {
  const { event } = one;
  const [noun = "", verb = ""] = event.kind.split(".");
  if (event.kind === "source.erased") return { state: unknownState };
  // The upstream did not do that, or it was over long ago.
  if (event.injected || isHistory(one)) return { state };
  if (noun === "session") return sessionEnded(state, one);
  if (noun === "loop") return verb === "failed" ? loopFailed(state, one) : good(state, one);
  if (noun === "command") return commandFinished(state, one);
  if (noun === "pod") return event.outcome === Outcome.OUTCOME_FAILED ? podFailed(state, one) : { state };
  if ((event.operation?.loop ?? 0) !== 0) return { state };
  if (verb !== "failed") return { state: { ...state, workedIn: event.session } };
  // The other failures of a session follow from the first one.
  return state.failedIn === event.session ? { state } : failed({ ...state, failedIn: event.session }, one);
}

/** Skaffold reports a loop as failed again each time that it has retried a sync. */
function loopFailed(state: ChatState, one: ChatEvent): Folded {
  const { session, operation } = one.event;
  const failedLoop = `${session}.${operation?.runner}.${operation?.loop}`;
  return state.failedLoop === failedLoop ? { state } : failed({ ...state, failedLoop }, one);
}

/** Only its own success says that a command that failed is good again: `destroy` does not repair an `up`. */
function commandFinished(state: ChatState, one: ChatEvent): Folded {
  const { outcome, detail } = one.event;
  const command = detail?.$case === "command" ? detail.value.command : "";
  const others = (state.failedCommands ?? []).filter((name) => name !== command);
  if (outcome === Outcome.OUTCOME_FAILED)
    return failed({ ...state, failedCommands: [...others, command].slice(-maxCommands) }, one);
  if (outcome !== Outcome.OUTCOME_SUCCEEDED) return { state };
  if (others.length > 0) return { state: { ...state, failedCommands: others } };
  return good({ ...state, failedCommands: undefined }, one);
}

/** When the held message is due; undefined: none is held. */
export function dueAt({ held, messageAt = 0 }: ChatState, intervalMs: number): number | undefined {
  return held === undefined ? undefined : messageAt + intervalMs;
}

/** Whether the held message is due. A clock that was set back makes nothing wait until it is as late again. */
export function isDue({ held, messageAt = 0 }: ChatState, at: number, intervalMs: number): boolean {
  return held !== undefined && Math.abs(at - messageAt) >= intervalMs;
}

/** The state when the held message is dropped, since its event is gone: nobody has read that the source fails. */
export function dropped(state: ChatState, intervalMs: number): ChatState {
  return state.held?.type === "failed" ? { ...state, held: undefined } : flushed(state, intervalMs).state;
}

/** The state when the held message is sent. */
export function flushed(state: ChatState, intervalMs: number): Folded {
  const { held } = state;
  if (held === undefined) return { state };
  const isReportedRed = held.type === "failed";
  const message = { ...held, more: state.unreported };
  const reported = { ...state, isReportedRed, unreported: 0, messageAt: dueAt(state, intervalMs), held: undefined };
  return { state: isReportedRed ? reported : { ...reported, redSince: undefined }, message };
}

function failed(state: ChatState, one: ChatEvent): Folded {
  const red = { ...state, ...redAfter(state, one) };
  const message = messageOf("failed", one, red.unreported);
  if (isFree(state, one)) {
    return { state: { ...red, isReportedRed: true, unreported: 0, messageAt: one.at, held: undefined }, message };
  }
  // Readers of the chat know that it fails.
  if (state.isReportedRed) return { state: { ...red, unreported: red.unreported + 1, held: undefined } };
  if (state.held === undefined) return { state: { ...red, held: message } };
  return { state: { ...red, unreported: red.unreported + 1 } };
}

/** A source that was good meanwhile fails since now, and what failed before is not counted as a part of that. */
function redAfter({ isRed, isReportedRed, redSince, unreported }: ChatState, one: ChatEvent) {
  if (isRed) return { isRed, redSince: redSince ?? timeOf(one), unreported };
  return { isRed: true, redSince: timeOf(one), unreported: isReportedRed ? 0 : unreported };
}

function good(state: ChatState, one: ChatEvent): Folded {
  if (!state.isRed) return { state };
  const { redSince } = state;
  const over = { ...state, isRed: false, failedIn: undefined, failedLoop: undefined };
  if (!state.isReportedRed) {
    const held = state.held === undefined ? 0 : 1;
    return { state: { ...over, redSince: undefined, unreported: state.unreported + held, held: undefined } };
  }
  const redMs = redSince === undefined ? undefined : Math.max(0, timeOf(one) - redSince);
  const message = { ...messageOf("good", one, state.unreported), redMs };
  if (!isFree(state, one)) return { state: { ...over, held: message } };
  const reported = {
    ...over,
    isReportedRed: false,
    redSince: undefined,
    unreported: 0,
    messageAt: one.at,
    held: undefined,
  };
  return { state: reported, message };
}

/** rkt does not report that a pod succeeded, so its host is never good again. */
function podFailed(state: ChatState, one: ChatEvent): Folded {
  if (!isFree(state, one)) return { state: { ...state, unreported: state.unreported + 1 } };
  return { state: { ...state, unreported: 0, messageAt: one.at }, message: messageOf("failed", one, state.unreported) };
}

/** A process that worked outside of loops, such as `skaffold build`, was good if its exit code is 0. */
function sessionEnded(state: ChatState, one: ChatEvent): Folded {
  const { session, detail } = one.event;
  const exitCode = detail?.$case === "session_detail" ? detail.value.exit_code : undefined;
  const isGood = exitCode === 0 && state.workedIn === session && state.failedIn !== session;
  const ended = { ...state, ...(state.workedIn === session && { workedIn: undefined }) };
  return isGood ? good(ended, one) : { state: ended };
}

function isFree({ messageAt, held }: ChatState, { at, intervalMs }: ChatEvent): boolean {
  return held === undefined && (messageAt === undefined || Math.abs(at - messageAt) >= intervalMs);
}

function timeOf({ event, at }: ChatEvent): number {
  return event.occurred_at === undefined ? at : msOfTimestamp(event.occurred_at);
}

/** Whether it happened long before it was recorded, as what is imported; if that is known. */
function isHistory(one: ChatEvent): boolean {
  const happenedAt = timeOf(one);
  return happenedAt >= earliestMs && one.at - happenedAt > historyMs;
}

function messageOf(type: ChatMessage["type"], { event, position, at }: ChatEvent, more: number): ChatMessage {
  const { source, session, operation } = event;
  const { kind = "", subject = "", runner = 0, loop = 0 } = operation ?? {};
  const isLoop = kind === "loop";
  return {
    id: position,
    type,
    at,
    source,
    what: whatOf(event, { kind, subject, loop }),
    error: type === "failed" ? (event.error?.message ?? "").slice(0, maxError) : "",
    operation: { session, kind, runner, loop },
    path: isLoop ? `/loops/${session}.${runner}.${loop}` : `/sessions/${session}?at=${position}`,
    more,
  };
}

/** A pod without a name has its UUID there: then its apps say more. */
function podName({ pod, name, apps }: PodDetail): string {
  return name !== pod && name !== "" ? name : apps.join(" ");
}

function whatOf(
  { detail, subject: of }: Event,
  { kind, subject, loop }: { readonly kind: string; readonly subject: string; readonly loop: number },
): string {
  if (kind === "loop") return `loop ${loop}`;
  if (detail?.$case === "command") return `vagrant ${detail.value.command}`.trim();
  if (detail?.$case === "pod") return `pod ${podName(detail.value) || of}`;
  return `${kind} ${subject}`.trim();
}
