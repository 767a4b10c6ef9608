import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { kindNoun } from "@tapedeck/shared/events/kinds";
import { msBetween, type Timestamp } from "@tapedeck/shared/time/timestamp";

/** What the steps of the current loop have reported; outside of loops, the steps since the runner began. */
export type LoopSteps = {
  /** Steps whose last report is a failure, by kind and subject, in the order of their first failures. */
  readonly failing: ReadonlyMap<string, FailingStep>;
  /** Artifacts whose builds run. */
  readonly building: ReadonlySet<string>;
  readonly failedBuild: FailedBuild | undefined;
};

/** A step that failed and has not succeeded since. */
export type FailingStep = {
  readonly kind: string;
  readonly subject: string;
  /** How often it failed. */
  readonly tries: number;
  /** The error of the first try. */
  readonly error: Event["error"];
};

/** The build because of which Skaffold ends the others. */
type FailedBuild = {
  readonly artifact: string;
  readonly at: Timestamp | undefined;
  /** Those that ran when it failed, or that began right after it. */
  readonly others: ReadonlySet<string>;
};

/** The part of a fact, or of its event, that steps are made of. */
type StepReport = Pick<Event, "kind" | "operation" | "outcome" | "error"> & { readonly at: Timestamp | undefined };

export const noSteps: LoopSteps = { failing: new Map(), building: new Set(), failedBuild: undefined };

/** Skaffold begins waiting builds right after one failed, and ends them at once. */
const consequenceMs = 500;

/** No project has this many artifacts. More are not remembered, because each report copies all of them. */
const maxSubjects = 1_000;

/** The steps after a report of one of them; anything else changes nothing. */
export function stepsAfter(steps: LoopSteps, report: StepReport): LoopSteps {
  const { kind, operation, outcome } = report;
  if (operation === undefined || operation.kind === "loop" || kindNoun(kind) !== operation.kind) return steps;
  const failing = failingAfter(steps.failing, report);
  const { subject } = operation;
  // Without a subject, all builds failed together, before any of them began.
  if (operation.kind !== "build" || subject === "") return { ...steps, failing };
  if (kind === "build.started") {
    const building = withOne(steps.building, subject);
    return { failing, building, failedBuild: failedBuildAfterStart(steps.failedBuild, subject, report.at) };
  }
  const building = without(steps.building, subject);
  if (outcome !== Outcome.OUTCOME_FAILED) {
    const { failedBuild } = steps;
    return {
      failing,
      building,
      failedBuild: failedBuild && { ...failedBuild, others: without(failedBuild.others, subject) },
    };
  }
  const others = new Set([...(steps.failedBuild?.others ?? []), ...building].slice(0, maxSubjects));
  others.delete(subject);
  return { failing, building, failedBuild: { artifact: subject, at: report.at, others } };
}

/**
 * The artifact whose failed build made Skaffold end this one; undefined where this one failed by itself. v1 reports both
 * as Failed, and "signal: killed" is also what remains of a build that ran out of memory.
 */
export function endedBecauseOf(steps: LoopSteps, artifact: string, error: Event["error"]): string | undefined {
  const { failedBuild } = steps;
  if (failedBuild === undefined || !failedBuild.others.has(artifact)) return undefined;
  return isEndedBySkaffold(error) ? failedBuild.artifact : undefined;
}

/** The texts of processes that a signal ended, and of another build's error passed on. */
const endedTexts =
  /\bsignal: (?:killed|interrupt|terminated)\b|\bexit (?:status|code):? (?:130|137|143)\b|\bbuild \[[^\]]*\] failed\b/i;

/**
 * Whether an error may be that of a step that Skaffold ended because another one failed. By itself it shows nothing: real
 * failures have such texts, too.
 */
export function isEndedBySkaffold(error: Event["error"]): boolean {
  return isContextCanceled(error) || endedTexts.test(error?.message ?? "");
}

/** Whether Skaffold gave up a step: because another one failed, or because the user ended Skaffold. */
export function isContextCanceled(error: Event["error"]): boolean {
  return error !== undefined && (/_CANCELLED\b/.test(error.code) || /\bcontext cancell?ed\b/i.test(error.message));
}

function failingAfter(
  failing: LoopSteps["failing"],
  { operation, outcome, error }: StepReport,
): ReadonlyMap<string, FailingStep> {
  if (operation === undefined || outcome === Outcome.OUTCOME_NONE) return failing;
  const { kind, subject } = operation;
  const key = JSON.stringify([kind, subject]);
  const known = failing.get(key);
  if (outcome === Outcome.OUTCOME_FAILED) {
    if (known === undefined && failing.size >= maxSubjects) return failing;
    return new Map(failing).set(key, { kind, subject, tries: (known?.tries ?? 0) + 1, error: known?.error ?? error });
  }
  if (known === undefined) return failing;
  const others = new Map(failing);
  others.delete(key);
  return others;
}

function failedBuildAfterStart(
  failedBuild: FailedBuild | undefined,
  artifact: string,
  at: Timestamp | undefined,
): FailedBuild | undefined {
  // The next round: the failed build is tried again.
  if (failedBuild === undefined || failedBuild.artifact === artifact) return undefined;
  const isConsequence =
    at !== undefined && failedBuild.at !== undefined && Math.abs(msBetween(failedBuild.at, at)) < consequenceMs;
  const { others } = failedBuild;
  return { ...failedBuild, others: isConsequence ? withOne(others, artifact) : without(others, artifact) };
}

function withOne(artifacts: ReadonlySet<string>, artifact: string): ReadonlySet<string> {
  return artifacts.size >= maxSubjects ? artifacts : new Set(artifacts).add(artifact);
}

function without(artifacts: ReadonlySet<string>, artifact: string): ReadonlySet<string> {
  if (!artifacts.has(artifact)) return artifacts;
  const others = new Set(artifacts);
  others.delete(artifact);
  return others;
}
