import { type Event, Outcome, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { kindNoun, operationKinds } from "@tapedeck/shared/events/kinds";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { OperationRow, OutcomeText } from "../../db/schema.ts";
import { key } from "../../db/text.ts";

/**
 * The fields that a start and its end share. An event that a client injected never ends an operation of the upstream.
 */
export type Pairing = Pick<OperationRow, "session" | "runner" | "loop" | "kind" | "subject" | "instance" | "injected">;

/** An event's effect on an operation. `once`: start and end in one. `lost`: no event will report how it ended. */
export type OperationStep =
  | { readonly pairing: Pairing; readonly does: "start" | "once" | "lost" }
  | { readonly pairing: Pairing; readonly does: "end"; readonly outcome: OutcomeText };

/** That of the columns. Ingest counts from 1, and imports are refused beyond it. */
const largestInt = 2 ** 31 - 1;

const kinds: ReadonlySet<string> = new Set(operationKinds);

/** Several views ask for the steps of one batch. */
const steps = new WeakMap<Event, OperationStep>();

export function stepOf({ event }: RecordedEvent): OperationStep | undefined {
  const noun = kindNoun(event.kind);
  if (!kinds.has(noun) || event.session === "") return undefined;
  const known = steps.get(event);
  if (known !== undefined) return known;
  const step = stepOfNoun(event, noun);
  if (step !== undefined) steps.set(event, step);
  return step;
}

function stepOfNoun(event: Event, noun: string): OperationStep | undefined {
  const [, verb = ""] = event.kind.split(".");
  const operation = event.operation ?? { kind: noun, subject: event.subject, runner: 0, loop: 0 };
  const { kind, subject, instance = "" } = operation;
  const { session, injected } = event;
  const [runner, loop] = [Math.min(operation.runner, largestInt), Math.min(operation.loop, largestInt)];
  const pairing = { session, runner, loop, kind: key(kind), subject: key(subject), instance: key(instance), injected };
  switch (verb) {
    case "started":
      return { pairing, does: "start" };
    case "succeeded":
    case "failed":
    case "canceled":
      // A job may succeed although its command failed: the kind is the state that the upstream reports.
      return { pairing, does: "end", outcome: noun === "job" ? outcomeOf(event) : verb };
    case "exited":
      return { pairing, does: "end", outcome: outcomeOf(event) };
    case "finished":
      return wasLost(event) ? { pairing, does: "lost" } : { pairing, does: "end", outcome: outcomeOf(event) };
    case "lost":
      return { pairing, does: "lost" };
    case "cached":
      return { pairing, does: "once" };
    default:
      return undefined;
  }
}

/** The outcome of an end whose kind does not contain it. */
export function outcomeOf({ outcome }: Event): OutcomeText {
  switch (outcome) {
    case Outcome.OUTCOME_SUCCEEDED:
      return "succeeded";
    case Outcome.OUTCOME_FAILED:
      return "failed";
    case Outcome.OUTCOME_CANCELED:
      return "canceled";
    default:
      return "unknown";
  }
}

export function pairingKey({ session, runner, loop, kind, subject, instance, injected }: Pairing): string {
  // Text of Postgres has no NUL.
  return `${session}\0${runner}\0${loop}\0${kind}\0${subject}\0${instance}\0${injected}`;
}

/** True for a command that was lost with its job: neither its outcome nor its time is known. */
function wasLost({ outcome, time_source }: Event): boolean {
  return outcome === Outcome.OUTCOME_UNKNOWN && time_source !== TimeSource.TIME_SOURCE_UPSTREAM;
}

/** True when the event ends everything that runs in its session. */
export function endsSession({ kind }: Event): boolean {
  return kind === "session.ended" || kind === "session.lost";
}
