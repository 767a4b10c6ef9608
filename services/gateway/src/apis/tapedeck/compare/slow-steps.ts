import type { SideSummary, SummaryStep } from "./side-summary.ts";

/** A step, and the same one of the other side if that can be compared. */
export type SlowStep = { readonly step: SummaryStep; readonly other: SummaryStep | undefined };

/** More than this factor out of line, and at least so much longer. */
const [factor, leastMs] = [2, 1_000];

/** Steps of the left that took much longer than on the other side and than usual, and those that did not. */
export function slowSteps(
  left: SideSummary,
  right: SideSummary | undefined,
): { readonly slow: readonly SlowStep[]; readonly ordinary: readonly SlowStep[] } {
  const slow: SlowStep[] = [];
  const ordinary: SlowStep[] = [];
  for (const step of left.steps) {
    const same = right?.steps.find(({ kind, subject }) => kind === step.kind && subject === step.subject);
    // A step that failed took as long as its failure; one from the cache no time.
    if (step.durationMs === undefined || step.isCached || !lasts(step)) continue;
    const other = same !== undefined && !same.isCached && lasts(same) ? same : undefined;
    const known = [step.usualMs, other?.durationMs].filter((ms) => ms !== undefined);
    if (known.length === 0) continue;
    const isOrdinary = known.some((ms) => !isMuchLonger(step.durationMs ?? 0, ms));
    (isOrdinary ? ordinary : slow).push({ step, other });
  }
  return { slow, ordinary };
}

function lasts({ outcome, kind }: SummaryStep): boolean {
  return outcome === "succeeded" || kind === "check" || kind === "deploy";
}

function isMuchLonger(ms: number, than: number): boolean {
  return ms > than * factor && ms - than >= leastMs;
}
