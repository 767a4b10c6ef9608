import type { Found, SideSummary, SummaryStep } from "./side-summary.ts";
import { type SlowStep, slowSteps } from "./slow-steps.ts";
import { isMentioned, type Story } from "./story.ts";
import { type Compared, nothing, type Same, type Weighed } from "./weighed.ts";

/** Not the failure of all builds together, which is of no artifact. */
const isBuild = ({ kind, subject }: SummaryStep) => kind === "build" && subject !== "";
const stepName = ({ kind, subject }: SummaryStep) => (subject === "" ? kind : `${kind} ${subject}`);

function pairsOf(left: SideSummary, right: SideSummary): readonly (readonly [SummaryStep, SummaryStep])[] {
  return left.steps.flatMap((step) => {
    const same = right.steps.find(({ kind, subject }) => kind === step.kind && subject === step.subject);
    return same === undefined ? [] : [[step, same] as const];
  });
}

/** Builds of the same artifacts for another platform, in one difference where it is the same for several. */
export function platformDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  const pairs = pairsOf(left, right).filter((pair) => pair.every((step) => isBuild(step) && step.platform !== ""));
  const isSame = ([one, other]: (typeof pairs)[number]) => one.platform === other.platform;
  const unlike = pairs.filter((pair) => !isSame(pair));
  const groups = Map.groupBy(unlike, ([one, other]) => `${one.platform} ${other.platform}`);
  const found = ({ platform, position }: SummaryStep): Found => ({ value: platform, position });
  return {
    same: pairs.filter(isSame).map(([{ subject, platform }]) => ({ kind: "platform", subject, value: platform })),
    differences: [...groups.values()].flatMap((group): Weighed[] => {
      const [first] = group;
      if (first === undefined) return [];
      const subject = group.map(([{ subject }]) => subject).join(", ");
      const [one, other] = first.map(found) as [Found, Found];
      const isNamed = isMentioned(story, [one.value, other.value]);
      return [
        {
          kind: "platform",
          subject,
          left: one,
          right: other,
          text: `${subject} is built for ${one.value}; for ${other.value} in ${right.name}`,
          // A build for another platform may be emulated, which explains how long it takes.
          points: 63 + (story.explains.has("platform") ? 40 : 0) + (isNamed ? 35 : 0),
        },
      ];
    }),
  };
}

/** In the loops of one session: the artifacts that were built in one and not in the other are what was changed. */
export function changedDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  if (!story.isSameSession) return nothing;
  const built = (summary: SideSummary) => new Map(summary.steps.filter(isBuild).map((step) => [step.subject, step]));
  const [one, other] = [built(left), built(right)];
  const changed = [...one.values()].filter(({ subject }) => !other.has(subject));
  const unchanged = [...one.values()].filter(({ subject }) => other.has(subject));
  return {
    same: unchanged.map(({ subject }) => ({ kind: "artifact", subject, value: "built in both" })),
    differences: changed.map((step) => ({
      kind: "artifact",
      subject: step.subject,
      right: undefined,
      left: { value: step.isCached ? "from the cache" : "built", position: step.position },
      text: `${step.subject} was changed and built; not in ${right.name}`,
      points: step.subject === story.subject ? 50 : 30,
    })),
  };
}

/** Steps that took much longer than on the other side, or than usual. */
export function durationDifferences(left: SideSummary, right: SideSummary | undefined, story: Story): Compared {
  const { slow: steps, ordinary } = slowSteps(left, right);
  const checkMs = left.steps.find(({ kind }) => kind === "check")?.durationMs ?? 0;
  // The check is a part of the deploy, and may be most of it.
  const isCheck = ({ kind, durationMs = 0 }: SummaryStep) => kind === "deploy" && checkMs > durationMs / 2;
  const isFailed = (step: SummaryStep) => story.phase === step.kind || (story.phase === "check" && isCheck(step));
  return {
    same: ordinary.map(asUsual),
    differences: steps.map((one) => slow(one, right, story, story.explains.has("duration") && !isFailed(one.step))),
  };
}

function asUsual({ step, other }: SlowStep): Same {
  const beside = other?.durationMs ?? step.usualMs ?? 0;
  const value = `${secondsText(step.durationMs ?? 0)} beside ${secondsText(beside)}`;
  return { kind: "duration", subject: stepName(step), value };
}

function slow({ step, other }: SlowStep, right: SideSummary | undefined, story: Story, isCause: boolean): Weighed {
  const { durationMs = 0, usualMs } = step;
  const found = ({ durationMs = 0, position }: SummaryStep): Found => ({ value: secondsText(durationMs), position });
  const usually = usualMs === undefined ? [] : [`usually ${secondsText(usualMs)}`];
  const there = other?.durationMs === undefined ? [] : [`${secondsText(other.durationMs)} in ${right?.name}`];
  return {
    kind: "duration",
    subject: stepName(step),
    left: found(step),
    right: other?.durationMs === undefined ? undefined : found(other),
    text: `${stepName(step)} took ${secondsText(durationMs)}; ${[...there, ...usually].join(", ")}`,
    points: (story.isFailure ? 28 : 62) + (isCause ? 45 : 0),
  };
}

/** "820 ms", "2.3 s", "72 s". */
function secondsText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 1_000)} s`;
}

/** Artifacts that one side took from the cache and the other built: of interest if nothing failed. */
export function cacheDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  const pairs = pairsOf(left, right).filter(([one, other]) => isBuild(one) && one.isCached !== other.isCached);
  const value = ({ isCached, durationMs, position }: SummaryStep): Found => ({
    value: isCached ? "from the cache" : durationMs === undefined ? "built" : `built in ${secondsText(durationMs)}`,
    position,
  });
  return {
    same: [],
    differences: pairs.map(([one, other]) => ({
      kind: "artifact",
      subject: one.subject,
      left: value(one),
      right: value(other),
      text: `${one.subject}: ${value(one).value}; ${value(other).value} in ${right.name}`,
      points: story.isFailure ? 12 : 48,
    })),
  };
}
