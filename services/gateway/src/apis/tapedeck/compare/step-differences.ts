import type { FactStep, Facts, Found } from "./facts.ts";
import { isMentioned, type Story } from "./story.ts";
import type { Compared, Weighed } from "./weighed.ts";

const isBuild = ({ kind }: FactStep) => kind === "build";
const stepName = ({ kind, subject }: FactStep) => (subject === "" ? kind : `${kind} ${subject}`);

function pairsOf(left: Facts, right: Facts): readonly (readonly [FactStep, FactStep])[] {
  return left.steps.flatMap((step) => {
    const same = right.steps.find(({ kind, subject }) => kind === step.kind && subject === step.subject);
    return same === undefined ? [] : [[step, same] as const];
  });
}

/** Builds of the same artifacts for another platform, in one difference where it is the same for several. */
export function platformDifferences(left: Facts, right: Facts, story: Story): Compared {
  const pairs = pairsOf(left, right).filter((pair) => pair.every((step) => isBuild(step) && step.platform !== ""));
  const unlike = pairs.filter(([one, other]) => one.platform !== other.platform);
  const groups = Map.groupBy(unlike, ([one, other]) => `${one.platform} ${other.platform}`);
  const found = ({ platform, position }: FactStep): Found => ({ value: platform, position });
  return {
    equal: pairs.length - unlike.length,
    differences: [...groups.values()].flatMap((group): Weighed[] => {
      const [first] = group;
      if (first === undefined) return [];
      const subject = group.map(([{ subject }]) => subject).join(", ");
      const [one, other] = first.map(found) as [Found, Found];
      const isNamed = isMentioned(story, [one.value, other.value]);
      return [
        {
          ...{ kind: "platform", subject, left: one, right: other },
          text: `${subject} is built for ${one.value}; for ${other.value} in ${right.name}`,
          // A build for another platform may be emulated, which explains how long it takes.
          points: 63 + (story.explains.has("platform") ? 40 : 0) + (isNamed ? 35 : 0),
        },
      ];
    }),
  };
}

/** In the loops of one session: the artifacts that were built in one and not in the other are what was changed. */
export function changedDifferences(left: Facts, right: Facts, story: Story): Compared {
  if (!story.isSameSession) return { differences: [], equal: 0 };
  const built = (facts: Facts) => new Map(facts.steps.filter(isBuild).map((step) => [step.subject, step]));
  const [one, other] = [built(left), built(right)];
  const changed = [...one.values()].filter(({ subject }) => !other.has(subject));
  return {
    equal: one.size - changed.length,
    differences: changed.map((step) => ({
      ...{ kind: "artifact", subject: step.subject, right: undefined },
      left: { value: step.isCached ? "from the cache" : "built", position: step.position },
      text: `${step.subject} was changed and built; not in ${right.name}`,
      points: step.subject === story.subject ? 50 : 30,
    })),
  };
}

/** More than this factor out of line, and at least so much longer. */
const [factor, leastMs] = [2, 1_000];

/** Steps that took much longer than on the other side, or than usual. */
export function durationDifferences(left: Facts, right: Facts | undefined, story: Story): Compared {
  const differences: Weighed[] = [];
  let equal = 0;
  for (const step of left.steps) {
    const same = right?.steps.find(({ kind, subject }) => kind === step.kind && subject === step.subject);
    // A step that failed took as long as its failure; one from the cache no time.
    if (step.durationMs === undefined || step.isCached || !lasts(step)) continue;
    const other = same !== undefined && !same.isCached && lasts(same) ? same.durationMs : undefined;
    const known = [step.usualMs, other].filter((ms) => ms !== undefined);
    if (known.length === 0) continue;
    if (known.some((ms) => !isMuchLonger(step.durationMs ?? 0, ms))) {
      equal += 1;
      continue;
    }
    differences.push(slow(step, same, { right, other, story }));
  }
  return { differences, equal };
}

function lasts({ outcome, kind }: FactStep): boolean {
  return outcome === "succeeded" || kind === "check" || kind === "deploy";
}

function isMuchLonger(ms: number, than: number): boolean {
  return ms > than * factor && ms - than >= leastMs;
}

type Beside = { readonly right: Facts | undefined; readonly other: number | undefined; readonly story: Story };

function slow(step: FactStep, same: FactStep | undefined, { right, other, story }: Beside): Weighed {
  const { durationMs = 0, usualMs } = step;
  const usually = usualMs === undefined ? [] : [`usually ${secondsText(usualMs)}`];
  const there = other === undefined ? [] : [`${secondsText(other)} in ${right?.name}`];
  const isCause = story.explains.has("duration") && story.phase !== step.kind;
  return {
    ...{ kind: "duration", subject: stepName(step) },
    left: { value: secondsText(durationMs), position: step.position },
    right: same && other !== undefined ? { value: secondsText(other), position: same.position } : undefined,
    text: `${stepName(step)} took ${secondsText(durationMs)}; ${[...there, ...usually].join(", ")}`,
    points: (story.isFailure ? 28 : 62) + (isCause ? 45 : 0),
  };
}

/** "820 ms", "2.3 s", "72 s". */
export function secondsText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 1_000)} s`;
}

/** What one side took from the cache and the other built: of note where nothing failed. */
export function cacheDifferences(left: Facts, right: Facts, story: Story): Compared {
  const pairs = pairsOf(left, right).filter(([one, other]) => isBuild(one) && one.isCached !== other.isCached);
  const value = ({ isCached, durationMs, position }: FactStep): Found => ({
    value: isCached ? "from the cache" : `built in ${secondsText(durationMs ?? 0)}`,
    position,
  });
  return {
    equal: 0,
    differences: pairs.map(([one, other]) => ({
      ...{ kind: "artifact", subject: one.subject, left: value(one), right: value(other) },
      text: `${one.subject}: ${value(one).value}; ${value(other).value} in ${right.name}`,
      points: story.isFailure ? 12 : 48,
    })),
  };
}
