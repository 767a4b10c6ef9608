import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { kindNoun, operationKinds } from "@tapedeck/shared/events/kinds";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";

/** Values of `cicd.pipeline.result` and `cicd.pipeline.task.run.result`, and `unknown`: the end was not observed. */
export type Result = "success" | "failure" | "error" | "cancellation" | "skip" | "unknown";

/** An operation as far as it was read. */
export type Operation = {
  readonly kind: string;
  readonly subject: string;
  readonly instance: string;
  /** The id and the place of its first event. */
  readonly id: string;
  readonly offset: Offset;
  /** Nanoseconds since 1970. */
  readonly startedAt: bigint | undefined;
  readonly endedAt: bigint | undefined;
  /** Undefined: it goes on. */
  readonly result: Result | undefined;
  readonly error: Event["error"];
  readonly exitCode: number | undefined;
  /** The detail of its last event. */
  readonly detail: Event["detail"];
};

const nouns: ReadonlySet<string> = new Set(operationKinds);

type Step = { readonly does: "start" } | { readonly does: "once" | "end"; readonly result: Result };

/** The operations of events in the order of the log. An operation that ends more than once has its last end. */
export function operationsOf(events: readonly RecordedEvent[]): readonly Operation[] {
  const all: Operation[] = [];
  const newest = new Map<string, number>();
  for (const recorded of events) {
    const step = stepOf(recorded.event);
    if (step === undefined) continue;
    const key = keyOf(recorded.event);
    const at = newest.get(key);
    const before = at === undefined ? undefined : all[at];
    if (step.does === "end" && at !== undefined && before !== undefined) {
      all[at] = ended(before, recorded, step.result);
    } else {
      newest.set(key, all.length);
      const begun = operationOf(recorded);
      all.push(step.does === "start" ? { ...begun, startedAt: timeOf(recorded) } : ended(begun, recorded, step.result));
    }
  }
  return all;
}

/** What an event does to its operation; undefined: nothing. */
export function stepOf(event: Event): Step | undefined {
  const noun = kindNoun(event.kind);
  if (!nouns.has(noun) || event.injected) return undefined;
  switch (event.kind.slice(noun.length + 1)) {
    case "started":
      return { does: "start" };
    case "cached":
      return { does: "once", result: "skip" };
    case "succeeded":
      return { does: "end", result: noun === "job" ? resultOf(event.outcome) : "success" };
    case "failed":
      return { does: "end", result: "failure" };
    case "canceled":
      return { does: "end", result: "cancellation" };
    case "exited":
    case "finished":
      return { does: "end", result: resultOf(event.outcome) };
    case "lost":
      return { does: "end", result: "unknown" };
    default:
      return undefined;
  }
}

/** When it happened, as far as is known. */
export function timeOf({ event, recordedAt }: RecordedEvent): bigint {
  const at = event.occurred_at ?? event.observed_at;
  return at === undefined ? BigInt(recordedAt.getTime()) * 1_000_000n : at.seconds * 1_000_000_000n + BigInt(at.nanos);
}

export function operationOf({ event, offset }: RecordedEvent): Operation {
  const { kind, subject, instance = "" } = event.operation ?? { kind: kindNoun(event.kind), subject: event.subject };
  return {
    kind,
    subject,
    instance,
    id: event.id,
    offset,
    startedAt: undefined,
    endedAt: undefined,
    result: undefined,
    error: undefined,
    exitCode: undefined,
    detail: event.detail,
  };
}

function ended(before: Operation, recorded: RecordedEvent, result: Result): Operation {
  const { event } = recorded;
  return {
    ...before,
    endedAt: timeOf(recorded),
    result,
    error: result === "success" ? undefined : event.error,
    exitCode: exitCodeOf(event),
    detail: event.detail ?? before.detail,
  };
}

/** Vagrant answers 0 also for a command that failed with an error. */
function exitCodeOf({ detail }: Event): number | undefined {
  if (detail?.$case === "app") return detail.value.exit_code;
  if (detail?.$case !== "command") return undefined;
  const { succeeded, exit_code } = detail.value;
  return succeeded || exit_code !== 0 ? exit_code : undefined;
}

function resultOf(outcome: Outcome): Result {
  switch (outcome) {
    case Outcome.OUTCOME_SUCCEEDED:
      return "success";
    case Outcome.OUTCOME_FAILED:
      return "failure";
    case Outcome.OUTCOME_CANCELED:
      return "cancellation";
    default:
      return "unknown";
  }
}

function keyOf(event: Event): string {
  const { operation } = event;
  if (operation === undefined) return `${kindNoun(event.kind)}\0${event.subject}`;
  return [operation.kind, operation.subject, operation.runner, operation.loop, operation.instance ?? ""].join("\0");
}
