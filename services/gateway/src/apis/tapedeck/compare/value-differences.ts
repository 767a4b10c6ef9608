import type { DifferenceKind } from "../schemas/comparison.ts";
import type { Facts, Found, Named } from "./facts.ts";
import { reasonOf } from "./reasons.ts";
import { isAfterFailure, isMentioned, isReady, type Story } from "./story.ts";
import type { Compared, Weighed } from "./weighed.ts";

type Pair = { readonly subject: string; readonly left: Found | undefined; readonly right: Found | undefined };

/** Points for what the failure's own text names, and for what its reason is known to come from. */
const [named, explained] = [35, 40];

/** What differs between two lists of values, weighed by `pointsOf`; undefined where it says nothing. */
function compared(
  kind: DifferenceKind,
  [left, right]: readonly [Named, Named],
  { name }: Pick<Facts, "name">,
  pointsOf: (pair: Pair) => number | undefined,
): Compared {
  const subjects = [...new Set([...left.keys(), ...right.keys()])];
  const pairs = subjects.map((subject): Pair => ({ subject, left: left.get(subject), right: right.get(subject) }));
  const unlike = pairs.filter((pair) => pair.left?.value !== pair.right?.value);
  return {
    equal: pairs.length - unlike.length,
    differences: unlike.flatMap((pair): Weighed[] => {
      const points = pointsOf(pair);
      return points === undefined ? [] : [{ kind, ...pair, text: valueText(pair, name), points }];
    }),
  };
}

export function valueText({ subject, left, right }: Pair, name: string): string {
  if (left === undefined) return `${subject} is absent; ${right?.value} in ${name}`;
  return `${subject}: ${left.value}; ${right === undefined ? "absent" : right.value} in ${name}`;
}

const wordsOf = ({ subject, left, right }: Pair) => [subject, left?.value ?? "", right?.value ?? ""];
const one = (name: string, found: Found): Named => (found.value === "" ? new Map() : new Map([[name, found]]));

export function versionDifference(left: Facts, right: Facts, story: Story): Compared {
  return compared("version", [one("version", left.version), one("version", right.version)], right, (pair) =>
    pair.left === undefined || pair.right === undefined
      ? undefined
      : 55 + (story.explains.has("version") ? explained : 0) + (isMentioned(story, wordsOf(pair)) ? named : 0),
  );
}

export function commandDifference(left: Facts, right: Facts, story: Story): Compared {
  const pair = [one("command", left.command), one("command", right.command)] as const;
  return compared("command", pair, right, ({ left, right }) => {
    if (left === undefined || right === undefined) return undefined;
    const [a, b] = [left.value.split(" "), right.value.split(" ")];
    const other = [...a.filter((word) => !b.includes(word)), ...b.filter((word) => !a.includes(word))];
    const isNamed = isMentioned(
      story,
      other.flatMap((word) => word.split("=")),
    );
    return (a[0] === b[0] ? 60 : 65) + (story.explains.has("command") ? explained : 0) + (isNamed ? named : 0);
  });
}

/** What is another in nearly every run, and so explains little. */
const ordinary: Readonly<Record<string, number>> = {
  ...{ branch: 42, commit: 36, dirty: 30, host: 15, user: 14 },
  ...{ ci: 25, ci_run: 4, ci_job: 6, ci_attempt: 4 },
};

export function labelDifferences(left: Facts, right: Facts, story: Story): Compared {
  return compared("label", [left.labels, right.labels], right, (pair) => {
    const usual = Object.hasOwn(ordinary, pair.subject) ? ordinary[pair.subject] : undefined;
    const isMissing = pair.left === undefined || pair.right === undefined;
    if (usual !== undefined) return isMissing ? usual - 2 : usual;
    const isNamed = isMentioned(story, wordsOf(pair));
    // Labels only hint at what is different on a machine.
    return (isMissing ? 56 : 46) + (story.explains.has("label") ? 25 : 0) + (isNamed ? named : 0);
  });
}

const deploying = ["deploy", "check", "verify", "exec", "render"];

export function settingDifferences(left: Facts, right: Facts, story: Story): Compared {
  if (left.settings.size === 0 || right.settings.size === 0) return { differences: [], equal: 0 };
  return compared("configuration", [left.settings, right.settings], right, (pair) => {
    const [area = "", subject = ""] = pair.subject.split(".");
    const isOfPhase = area === "build" ? story.phase === "build" : deploying.includes(story.phase);
    const isOfSubject = area === "build" && subject !== "" && subject === story.subject;
    const fits = !story.isFailure
      ? 0
      : isOfSubject
        ? 25
        : isOfPhase
          ? 12
          : area === "build" || story.phase === "build"
            ? -15
            : 0;
    const isNamed = isMentioned(story, [pair.left?.value ?? "", pair.right?.value ?? ""]);
    return 58 + fits + (story.explains.has("configuration") && isOfPhase ? explained - 12 : 0) + (isNamed ? named : 0);
  });
}

/** An artifact that only one of the sides has: the other can't have built it. */
export function artifactDifferences(left: Facts, right: Facts, story: Story): Compared {
  if (left.artifacts === undefined || right.artifacts === undefined) return { differences: [], equal: 0 };
  return compared(
    "artifact",
    [left.artifacts, right.artifacts],
    right,
    (pair) => 58 + (story.explains.has("artifact") ? 10 : 0) + (isMentioned(story, [pair.subject]) ? named : 0),
  );
}

export function resourceDifferences(left: Facts, right: Facts, story: Story): Compared {
  // A side that checked nothing in its loop, or came to no check, says nothing of its resources.
  const isSilent = left.resources.size === 0 || right.resources.size === 0 || isAfterFailure(story, "check");
  if (isSilent) return { differences: [], equal: 0 };
  return compared("resource", [left.resources, right.resources], right, ({ left, right }) => {
    const bad = [left, right].find((found) => found !== undefined && !isReady(found.value));
    if (bad === undefined) return left !== undefined && right !== undefined ? undefined : story.isFailure ? 20 : 50;
    if (left === undefined || right === undefined) return story.isFailure ? 24 : 52;
    return 64 + (story.phase === "check" || story.phase === "deploy" ? 10 : 0) + (reasonOf(bad.value) ? 8 : 0);
  });
}

export function portDifferences(left: Facts, right: Facts, story: Story): Compared {
  // What failed before forwards no ports.
  const isConsequence = [left, right].some(({ failure, ports }) => failure !== undefined && ports.size === 0);
  if (isConsequence && !story.explains.has("port")) return { differences: [], equal: 0 };
  return compared("port", [left.ports, right.ports], right, (pair) => {
    const isMissing = pair.left === undefined || pair.right === undefined;
    const isNamed = isMentioned(
      story,
      wordsOf(pair).map((word) => word.replace(/^localhost:/, "")),
    );
    const plain = story.isFailure ? 34 : isMissing ? 50 : 55;
    return plain + (story.explains.has("port") && !isMissing ? explained : 0) + (isNamed ? named : 0);
  });
}

export function debuggerDifferences(left: Facts, right: Facts, story: Story): Compared {
  const isConsequence = [left, right].some(({ failure, debuggers }) => failure !== undefined && debuggers.size === 0);
  if (isConsequence) return { differences: [], equal: 0 };
  return compared(
    "debugger",
    [left.debuggers, right.debuggers],
    right,
    (pair) => (story.isFailure ? 33 : 52) + (isMentioned(story, [pair.subject.split("/").at(-1) ?? ""]) ? named : 0),
  );
}

export function gapDifference(left: Facts, right: Facts): Compared {
  const gaps = ({ gaps, position }: Facts): Named =>
    gaps === 0 ? new Map() : new Map([["gaps", { value: String(gaps), position }]]);
  return compared("gap", [gaps(left), gaps(right)], right, () => 3);
}
