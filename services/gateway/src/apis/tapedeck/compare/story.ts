import type { DifferenceKind } from "../schemas/comparison.ts";
import { type Hint, hintOf } from "./hints.ts";
import type { Failure, SideSummary, SummaryStep } from "./side-summary.ts";
import { slowSteps } from "./slow-steps.ts";

/** What is to be explained: the failures of both sides, and all their texts. */
export type Story = {
  readonly isFailure: boolean;
  /** Both sides are of one session, and so of the same process. */
  readonly isSameSession: boolean;
  readonly phase: string;
  readonly subject: string;
  /** The steps that did not happen because this one failed. */
  readonly later: ReadonlySet<string>;
  readonly explains: ReadonlySet<DifferenceKind>;
  /** The settings, by the first part of their names, that the texts are known to come of. */
  readonly areas: ReadonlySet<string>;
  /** The words of these texts. */
  readonly words: readonly string[];
  /** The major numbers of the versions that these texts speak of: "release version 21". */
  readonly majors: ReadonlySet<string>;
  /** Steps of the left side that took much longer than they should. */
  readonly slow: readonly SummaryStep[];
};

/** The steps of a loop, or of a command, in their order. */
const order = ["build", "test", "render", "deploy", "check", "verify", "exec"] as const;

/** The steps after one. The runner is made before everything else; a loop prepares what it watches after its deploy. */
function stepsAfter(phase: string, loop: number): readonly string[] {
  const steps: readonly string[] = loop === 0 ? ["init", ...order] : [...order, "init"];
  return steps.includes(phase) ? steps.slice(steps.indexOf(phase) + 1) : [];
}

/** Later parts of a text contribute little to the cause. */
const longestText = 8_192;
const major = /\b(?:version|release)s?\W{1,4}v?(\d{1,4})\b(?!\.\d)/gi;

export function storyOf(left: SideSummary, right: SideSummary | undefined): Story {
  const failures = [left.failure, right?.failure].filter((failure) => failure !== undefined);
  const [main] = failures;
  const failing = left.failure === undefined ? right : left;
  const texts = [
    ...failures.flatMap(textsOf),
    ...[left, right].flatMap((side) => (side?.failure === undefined ? [] : badResources(side))),
  ];
  const hints = hintsOf(texts, main?.phase ?? "");
  return {
    isFailure: main !== undefined,
    isSameSession: left.session === right?.session,
    phase: main?.phase ?? "",
    subject: main?.subject ?? "",
    later: new Set(stepsAfter(main?.phase ?? "", failing?.loop ?? 0)),
    explains: new Set(hints.flatMap(({ explains }) => explains)),
    areas: new Set(hints.flatMap(({ areas = [] }) => areas)),
    words: [...new Set(texts.flatMap((text) => ` ${text.slice(0, longestText)} `.split(/[^\w./:@-]+/)))],
    majors: new Set(
      texts.flatMap((text) => [...text.slice(0, longestText).matchAll(major)].map(([, number = ""]) => number)),
    ),
    slow: slowSteps(left, right).slow.map(({ step }) => step),
  };
}

function hintsOf(texts: readonly string[], phase: string): readonly Hint[] {
  const hints = texts
    .flatMap((text) => hintOf(text) ?? [])
    .filter(({ phases }) => phases === undefined || phases.includes(phase));
  return hints.some(({ isWhole }) => isWhole) ? hints.filter(({ isWhole }) => isWhole) : hints;
}

function textsOf({ text, cause, suggestions, output }: Failure): readonly string[] {
  return [cause?.text ?? "", text, ...output.map(({ value }) => value), ...suggestions].filter((one) => one !== "");
}

function badResources({ resources }: SideSummary): readonly string[] {
  return [...resources].flatMap(([name, { value }]) => (isReady(value) ? [] : [`${name}: ${value}`]));
}

export function isReady(status: string): boolean {
  return /^(?:ready|running|succeeded|completed?|created)$/i.test(status);
}

/** Shorter words are in any text. */
const shortest = 3;

/**
 * Whether the texts of the failure speak of one of the words, as a word of its own. `least`: how long a word must be; a
 * name such as "db" is short.
 */
export function isMentioned(story: Story, words: readonly string[], least = shortest): boolean {
  const long = words.filter((word) => word.length >= least);
  // Versions of one major number are no different there.
  const majors = long.map(majorOf).filter((number) => number !== "");
  const isMajorNamed = new Set(majors).size === majors.length && majors.some((number) => story.majors.has(number));
  return isMajorNamed || long.some((word) => story.words.some((part) => isWord(part, word)));
}

/** The first number of a version such as "v21.0.2"; empty where it is none. */
function majorOf(word: string): string {
  return /^v?(\d+)\.\d+[\w.+-]*$/.exec(word)?.[1] ?? "";
}

function isWord(part: string, word: string): boolean {
  if (!part.includes(word)) return false;
  // "1.22" is meant by "1.22.0".
  if (/^\d+\.\d/.test(word) && part.startsWith(`${word}.`)) return true;
  // A registry or a folder is meant by what is in it.
  if (word.includes("/") && part.startsWith(`${word}/`)) return true;
  return part === word || part.split(/[/:@]/).includes(word) || isWithPunctuation(part, word);
}

/** "web:" is "web". */
function isWithPunctuation(part: string, word: string): boolean {
  return part.startsWith(word) && /^[.:]*$/.test(part.slice(word.length));
}

/** The line that says why it failed. */
export function causeText({ cause, text }: Failure): string {
  return cause?.text || (text.split("\n").find((line) => line.trim() !== "") ?? "").trim();
}

/** Whether two failures are of one step and have the same kind of cause. */
export function isSameFailure(one: Failure, other: Failure): boolean {
  const key = (failure: Failure) => [failure.phase, failure.subject, failure.cause?.group ?? failure.text].join("\n");
  return key(one) === key(other);
}
