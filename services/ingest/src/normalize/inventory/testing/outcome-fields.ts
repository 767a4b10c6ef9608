import type { GapDetail, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { Kind } from "@tapedeck/shared/events/kinds";
import type { Fact } from "../../fact.ts";
import type { ObservationOutcome } from "../observing.ts";

// The outcomes of observations as tests compare them: only the fields that distinguish one fact from another, with
// their names in tapedeck.v1.Event and its details.

export type FactFields = {
  readonly inferred?: boolean;
  readonly outcome?: Outcome;
  /** PodDetail */
  readonly phase?: string;
  readonly removed?: boolean;
  readonly started?: boolean;
  /** AppDetail */
  readonly exit_code?: number | undefined;
  /** JobDetail, CommandDetail */
  readonly attempt?: number;
  readonly reason?: string;
  readonly command?: string;
  /** MirrorDetail */
  readonly what?: string;
  /** TextDetail.output */
  readonly index?: bigint;
  /** The names of the fields of a Vagrant resource that changed. */
  readonly changed?: readonly string[];
};

export type ComparedFact = { readonly kind: Kind; readonly subject: string } & FactFields;

export type ComparedOutcome =
  | { readonly what: "frame"; readonly facts: readonly ComparedFact[] }
  | { readonly what: "gap"; readonly output?: GapDetail["output"] }
  | { readonly what: "another session" };

export function fact(kind: Kind, subject = "", fields: FactFields = {}): ComparedFact {
  return { kind, subject, ...fields };
}

/** The facts of one frame, in order. */
export function frame(...facts: readonly ComparedFact[]): ComparedOutcome {
  return { what: "frame", facts };
}

export const described = frame(fact("inventory.described"));
export const unreadable = frame(fact("upstream.unreadable"));
export const gap: ComparedOutcome = { what: "gap" };
export const anotherSession: ComparedOutcome = { what: "another session" };

/** `detailOf`: the fields of a fact's detail that are compared. */
export function compared(
  outcomes: readonly ObservationOutcome[],
  detailOf: (fact: Fact) => FactFields,
): readonly ComparedOutcome[] {
  return outcomes.map((one) => {
    if (one.what === "another session") return anotherSession;
    if (one.what === "gap") return { what: "gap", ...(one.output && { output: one.output }) };
    return frame(...one.facts.map((each) => comparedFact(each, detailOf(each))));
  });
}

function comparedFact({ kind, subject, inferred }: Fact, fields: FactFields): ComparedFact {
  return fact(kind, subject, { ...(inferred && { inferred }), ...fields });
}
