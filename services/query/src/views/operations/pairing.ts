import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { Recorded } from "@tapedeck/shared/log/log";
import type { OperationRow, OutcomeText } from "../../db/schema.ts";
import { key } from "../../db/text.ts";

/** What a start and its end have in common. What clients make up through Handle never ends what really runs. */
export type Pairing = Pick<OperationRow, "session" | "runner" | "loop" | "kind" | "subject" | "injected">;

/** What an event says about an operation; `once`: it is start and end in one. */
export type Step =
  | { readonly pairing: Pairing; readonly does: "start" | "once" }
  | { readonly pairing: Pairing; readonly does: "end"; readonly outcome: OutcomeText };

/** What is begun and comes to an end; "pod" and "app" are their runs. */
const kinds = new Set(["loop", "build", "test", "render", "deploy", "verify", "exec", "check", "sync", "pod", "app"]);

export function stepOf({ event }: Recorded): Step | undefined {
  const [noun = "", verb = ""] = event.kind.split(".");
  if (!kinds.has(noun) || event.session === "") return undefined;
  const { kind, subject, runner, loop } = event.operation ?? { kind: noun, subject: event.subject, runner: 0, loop: 0 };
  const pairing = { session: event.session, runner, loop, kind, subject: key(subject), injected: event.injected };
  switch (verb) {
    case "started":
      return { pairing, does: "start" };
    case "succeeded":
    case "failed":
    case "canceled":
      return { pairing, does: "end", outcome: verb };
    case "exited":
      return { pairing, does: "end", outcome: outcomeOf(event) };
    case "cached":
      return { pairing, does: "once" };
    default:
      return undefined;
  }
}

/** An end whose kind does not say how it was. */
function outcomeOf({ outcome }: Event): OutcomeText {
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

export function pairingKey({ session, runner, loop, kind, subject, injected }: Pairing): string {
  return JSON.stringify([session, runner, loop, kind, subject, injected]);
}
