import { hintOf, isTelling } from "./hints.ts";
import type { Failure, SideSummary } from "./side-summary.ts";
import { causeText, isSameFailure } from "./story.ts";
import { type Compared, nothing, type Weighed } from "./weighed.ts";

/**
 * Points: a text with a clear reason explains by itself. One that only reports a failure has to be explained: by
 * another branch or commit if by nothing better, but not by another host.
 */
const points = { differs: 72, known: 70, isExplained: 62, onlyFailed: 35 } as const;

/** How the sides failed, if they did not fail in the same way. */
export function failureDifference(left: SideSummary, right: SideSummary | undefined): Compared {
  const [one, other] = [left.failure, right?.failure];
  const same = (subject: string, value: string): Compared => ({
    differences: [],
    same: [{ kind: "failure", subject, value }],
  });
  if (one === undefined && other === undefined) return right === undefined ? nothing : same("failure", "none");
  if (one !== undefined && other !== undefined && isSameFailure(one, other)) return same(stepName(one), causeText(one));
  return { differences: [weighed(one, other, right)], same: [] };
}

function weighed(one: Failure | undefined, other: Failure | undefined, right: SideSummary | undefined): Weighed {
  const subject = stepName((one ?? other) as Failure);
  const found = (failure: Failure | undefined) => failure && { value: causeText(failure), position: placeOf(failure) };
  const texts = [one, other].filter((failure) => failure !== undefined).map(causeText);
  const [first = ""] = texts;
  const isBoth = one !== undefined && other !== undefined;
  return {
    kind: "failure",
    subject,
    text: sentence(one, other, right),
    left: found(one),
    right: found(other),
    points: isBoth ? points.differs : pointsOf(first),
  };
}

function sentence(one: Failure | undefined, other: Failure | undefined, right: SideSummary | undefined): string {
  const name = right?.name ?? "";
  if (one === undefined) return other === undefined ? "" : `${failed(other)} in ${name}, and not here`;
  if (other !== undefined) return `${failed(one)}; in ${name} ${failed(other)}`;
  const same = right?.steps.find(({ kind, subject }) => kind === one.phase && subject === one.subject);
  return same?.outcome === "succeeded" ? `${failed(one)}; it succeeded in ${name}` : failed(one);
}

function failed(failure: Failure): string {
  const tries = failure.tries > 1 ? ` in ${failure.tries} tries` : "";
  const cause = causeText(failure);
  return `${stepName(failure)} failed${tries}${cause === "" ? "" : `: ${cause}`}`;
}

/** Where the output has the cause; else where the failure was reported. */
function placeOf({ output, position }: Failure): string {
  return output.find(({ isCause }) => isCause)?.position ?? position;
}

function stepName({ phase, subject }: Failure): string {
  return [phase, subject].filter((part) => part !== "").join(" ");
}

/** A text with a known meaning is worth more than one that only looks like an error. */
function pointsOf(text: string): number {
  const hint = hintOf(text);
  if (hint !== undefined) return hint.isVague ? points.isExplained : points.known;
  return isTelling(text) ? points.isExplained : points.onlyFailed;
}
