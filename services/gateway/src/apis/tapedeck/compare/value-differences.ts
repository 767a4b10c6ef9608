import { ownValue } from "@tapedeck/shared/own-value";
import type { DifferenceKind } from "../schemas/comparison.ts";
import { differentOptions, isConfiguration } from "./command-options.ts";
import { hintOf, isTelling } from "./hints.ts";
import type { FileChanges, Found, FoundByName, SideSummary } from "./side-summary.ts";
import { isMentioned, isReady, type Story } from "./story.ts";
import { type Compared, nothing, type Weighed } from "./weighed.ts";

export type Pair = { readonly subject: string; readonly left: Found | undefined; readonly right: Found | undefined };

/** Points for what the failure's own text names, and for what its reason is known to come from. */
export const [named, explained] = [35, 40];

/** The differences between two lists of values, weighed by `pointsOf`; undefined if it is meaningless. */
export function compared(
  kind: DifferenceKind,
  [left, right]: readonly [FoundByName, FoundByName],
  { name }: Pick<SideSummary, "name">,
  pointsOf: (pair: Pair) => number | undefined,
): Compared {
  const subjects = [...new Set([...left.keys(), ...right.keys()])];
  const pairs = subjects.map((subject): Pair => ({ subject, left: left.get(subject), right: right.get(subject) }));
  const isSame = (pair: Pair) => pair.left?.value === pair.right?.value;
  const unlike = pairs.filter((pair) => !isSame(pair));
  return {
    same: pairs.filter(isSame).map(({ subject, left }) => ({ kind, subject, value: left?.value ?? "" })),
    differences: unlike.flatMap((pair): Weighed[] => {
      const points = pointsOf(pair);
      return points === undefined ? [] : [{ kind, ...pair, text: valueText(pair, name), points }];
    }),
  };
}

function valueText({ subject, left, right }: Pair, name: string): string {
  if (left === undefined) return `${subject} is absent; ${right?.value} in ${name}`;
  return `${subject}: ${left.value}; ${right === undefined ? "absent" : right.value} in ${name}`;
}

const wordsOf = ({ subject, left, right }: Pair) => [subject, left?.value ?? "", right?.value ?? ""];
const one = (name: string, found: Found): FoundByName => (found.value === "" ? new Map() : new Map([[name, found]]));

export function versionDifference(left: SideSummary, right: SideSummary, story: Story): Compared {
  return compared("version", [one("version", left.version), one("version", right.version)], right, (pair) =>
    pair.left === undefined || pair.right === undefined
      ? undefined
      : // Texts speak of versions of all sorts: the word alone does not name this one.
        55 +
        (story.explains.has("version") ? explained : 0) +
        (isMentioned(story, [pair.left.value, pair.right.value]) ? named : 0),
  );
}

export function commandDifference(left: SideSummary, right: SideSummary, story: Story): Compared {
  const pair = [one("command", left.command), one("command", right.command)] as const;
  return compared("command", pair, right, ({ left, right }) => {
    if (left === undefined || right === undefined) return undefined;
    const [a, b] = [left.value.split(" "), right.value.split(" ")];
    const other = [...a.filter((word) => !b.includes(word)), ...b.filter((word) => !a.includes(word))];
    // Texts name an option with its dashes or without.
    const isNamed = isMentioned(
      story,
      other.flatMap((word) => [...word.split("="), ...word.replace(/^-+/, "").split("=")]),
    );
    const isConfigured = differentOptions(left.value, right.value).some(isConfiguration);
    const isExplained = story.explains.has("command") || (isConfigured && story.explains.has("configuration"));
    return (a[0] === b[0] ? 60 : 65) + (isExplained ? explained : 0) + (isNamed ? named : 0);
  });
}

/** Values that differ in nearly every run, and so explain little. */
const ordinary: Readonly<Record<string, number>> = {
  branch: 42,
  commit: 36,
  dirty: 30,
  host: 15,
  user: 14,
  ci: 25,
  ci_run: 4,
  ci_job: 6,
  ci_attempt: 4,
};

export function labelDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  return compared("label", [left.labels, right.labels], right, (pair) => {
    const rank = ownValue(ordinary, pair.subject);
    const isMissing = pair.left === undefined || pair.right === undefined;
    if (rank !== undefined) return isMissing ? rank - 2 : rank;
    const isNamed = isMentioned(story, wordsOf(pair));
    // Labels only hint at what is different on a machine.
    return (isMissing ? 56 : 46) + (story.explains.has("label") ? 25 : 0) + (isNamed ? named : 0);
  });
}

/**
 * An artifact that only one of the sides has: the other can't have built it. If something is missing where it failed,
 * that may well be the image that was never built there.
 */
export function artifactDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  if (left.artifacts === undefined || right.artifacts === undefined) return nothing;
  return compared("artifact", [left.artifacts, right.artifacts], right, (pair) => {
    const isUnbuilt = pair.left === undefined && left.failure !== undefined;
    const reasons = story.explains.has("artifact") ? (isUnbuilt ? explained : 10) : 0;
    return 58 + reasons + (isMentioned(story, [pair.subject]) ? named : 0);
  });
}

export function resourceDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  // A side that checked nothing in its loop, or came to no check, has no statement about its resources.
  const isSilent = left.resources.size === 0 || right.resources.size === 0 || story.later.has("check");
  if (isSilent) return nothing;
  const { artifacts } = left;
  return compared("resource", [left.resources, right.resources], right, (pair) => {
    const { left, right } = pair;
    if (story.explains.has("resource") && isDown(pair, story, artifacts)) return 54 + explained;
    const unready = [left, right].filter((found) => found !== undefined).filter(({ value }) => !isReady(value));
    const bad = unready.find(({ value }) => !hasEndedWell(value)) ?? unready[0];
    if (bad === undefined) return left !== undefined && right !== undefined ? undefined : story.isFailure ? 20 : 50;
    if (left === undefined || right === undefined) return story.isFailure ? 24 : 52;
    const isChecked = story.phase === "check" || story.phase === "deploy";
    // A status that was not waited for means little without a text: a version or a setting may explain it.
    const hint = hintOf(bad.value);
    const isExplained = isTelling(isChecked ? bad.value : textOf(bad.value)) && hint?.isVague !== true;
    // A job that is done is seldom bad.
    const plain = isExplained ? 64 : hasEndedWell(bad.value) ? 44 : 54;
    return plain + (isChecked ? 10 : 0) + (hint && !hint.isVague ? 8 : 0);
  });
}

const lastPart = (subject: string) => subject.split("/").at(-1) ?? "";
const isOwn = ({ subject }: Pair, story: Story) => story.phase === "app" && subject === lastPart(story.subject);

/**
 * Something else was there on the good side and is not on this one, so that it cannot answer. A machine that is not created
 * yet may be so because of the failure, and so may be a resource that was not checked, but not an app of a rkt host.
 */
function isDown(pair: Pair, story: Story, artifacts: SideSummary["artifacts"]): boolean {
  const { subject, left, right } = pair;
  if (right === undefined || !isReady(right.value) || isOwn(pair, story)) return false;
  const name = lastPart(subject);
  // What is built here is deployed here, too: a check that ended early said nothing about it.
  if (left === undefined)
    return story.phase === "app" || (artifacts?.has(name) !== true && isMentioned(story, [name], 2));
  return /^(?:exited|destroyed|halted|power ?off|saved|aborted|stopped|paused|prepared|garbage)\b/i.test(left.value);
}

/** What follows the status: "failed: Insufficient memory". */
const textOf = (status: string) => status.slice((/^[^:]*:? ?/.exec(status)?.[0] ?? "").length);
/** Or it was terminated: rkt's code is the number of SIGTERM, which the other apps of a pod get when one fails. */
const hasEndedWell = (status: string) => /^exited (?:0|15)$/i.test(status);

export function portDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  // A loop that failed earlier forwards no ports.
  const isConsequence = [left, right].some(({ failure, ports }) => failure !== undefined && ports.size === 0);
  if (isConsequence && !story.explains.has("port")) return nothing;
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

export function debuggerDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  const isConsequence = [left, right].some(({ failure, debuggers }) => failure !== undefined && debuggers.size === 0);
  if (isConsequence) return nothing;
  return compared(
    "debugger",
    [left.debuggers, right.debuggers],
    right,
    (pair) => (story.isFailure ? 33 : 52) + (isMentioned(story, [pair.subject.split("/").at(-1) ?? ""]) ? named : 0),
  );
}

export function gapDifference(left: SideSummary, right: SideSummary): Compared {
  const gaps = ({ gaps, position }: SideSummary): FoundByName =>
    gaps === 0 ? new Map() : new Map([["gaps", { value: String(gaps), position }]]);
  return compared("gap", [gaps(left), gaps(right)], right, () => 3);
}

/** Files that git reports as changed between the loops. A session's first list may have older changes, not yet committed. */
export function fileDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  const [own, other] = [left.checkout, right.checkout];
  if (own === undefined || own.source !== other?.source) return nothing;
  const { isSameSession } = story;
  const changes = isSameSession ? own.changes.filter(({ at }) => at > other.at) : own.changes;
  // The last change to a file counts.
  const last = new Map(changes.flatMap((list) => list.files.map((file) => [file.path, { ...file, list }] as const)));
  const files = [...last.values()].map(({ path, change, list: { position } }): Weighed => {
    const text = isSameSession ? `${path} was ${change} since ${right.name}` : `${path}: ${change}, as git reports`;
    const isNamed = isMentioned(story, [path, path.split("/").at(-1) ?? ""]);
    const points = (isSameSession ? 57 : 37) + (isNamed ? named : 0);
    return { kind: "file", subject: path, text, left: { value: change, position }, right: undefined, points };
  });
  return { differences: [...files, ...unlisted(changes)], same: [] };
}

/** What `fileDifferences` could not compare, as a sentence, because it was not read. */
export function unreadFiles(left: SideSummary, right: SideSummary | undefined): readonly string[] {
  const [own, other] = [left.checkout, right?.checkout];
  if (own?.from === undefined || other === undefined || own.source !== other.source) return [];
  const isEnough = left.session === right?.session && own.from <= other.at;
  return isEnough ? [] : ["Only its newest lists of changed files were compared."];
}

/** The files beyond those that a list holds. Lists may count the same ones. */
function unlisted(changes: readonly FileChanges[]): readonly Weighed[] {
  const [most] = changes.toSorted((a, b) => b.more - a.more);
  if (most === undefined || most.more === 0) return [];
  const value = `${most.more} or more changed`;
  const left = { value, position: most.position };
  return [{ kind: "file", subject: "other files", text: `other files: ${value}`, left, right: undefined, points: 36 }];
}
