import type { DifferenceKind } from "../schemas/comparison.ts";
import type { Facts, Failure } from "./facts.ts";
import { type Reason, reasonOf, sameText, tellingText } from "./reasons.ts";

/** What is to be explained: the failures of both sides, and everything that was said of them. */
export type Story = {
  readonly isFailure: boolean;
  /** Both sides are of one session, and so of the same process. */
  readonly isSameSession: boolean;
  readonly phase: string;
  readonly subject: string;
  readonly explains: ReadonlySet<DifferenceKind>;
  /** The words of these texts. */
  readonly words: readonly string[];
};

/** The steps of a loop in their order: what comes after the one that failed did not happen because of it. */
const order: readonly string[] = ["build", "test", "render", "deploy", "check", "verify", "exec"];

/** What comes later in a text says little of the cause. */
const longestText = 8_192;

export function storyOf(left: Facts, right: Facts | undefined): Story {
  const failures = [left.failure, right?.failure].filter((failure) => failure !== undefined);
  const [main] = failures;
  const texts = [
    ...failures.flatMap(textsOf),
    ...[left, right].flatMap((side) => (side?.failure === undefined ? [] : badResources(side))),
  ];
  return {
    isFailure: main !== undefined,
    isSameSession: left.session === right?.session,
    phase: main?.phase ?? "",
    subject: main?.subject ?? "",
    explains: new Set(texts.flatMap((text) => reasonOf(text)?.explains ?? [])),
    words: [...new Set(texts.flatMap((text) => ` ${text.slice(0, longestText)} `.split(/[^\w./:@-]+/)))],
  };
}

export function textsOf({ text, suggestions, log }: Failure): readonly string[] {
  return [text, ...log.map(({ value }) => value), ...suggestions];
}

function badResources({ resources }: Facts): readonly string[] {
  return [...resources].flatMap(([name, { value }]) => (isReady(value) ? [] : [`${name}: ${value}`]));
}

export function isReady(status: string): boolean {
  return /^(?:ready|running|succeeded|completed?|created)$/i.test(status);
}

/** Whether the texts of the failure speak of one of the words, as a word of its own. */
export function isMentioned(story: Story, words: readonly string[]): boolean {
  return words.filter((word) => word.length >= 3).some((word) => story.words.some((part) => isWord(part, word)));
}

function isWord(part: string, word: string): boolean {
  if (!part.includes(word)) return false;
  // "1.22" is meant by "1.22.0".
  if (/^\d+\.\d/.test(word) && part.startsWith(`${word}.`)) return true;
  return part === word || part.split(/[/:@]/).includes(word) || part.replace(/[.:]+$/, "") === word;
}

export function isAfterFailure({ phase }: Story, step: string): boolean {
  return order.includes(phase) && order.indexOf(step) > order.indexOf(phase);
}

/** The line that says most of a failure. */
export function tellingLine(failure: Failure): { readonly text: string; readonly reason: Reason | undefined } {
  const text = tellingText(textsOf({ ...failure, suggestions: [] }).join("\n"));
  return { text, reason: reasonOf(text) };
}

/** Whether two failures are of one step and say the same. */
export function isSameFailure(one: Failure, other: Failure): boolean {
  const key = (failure: Failure) => [failure.phase, failure.subject, sameText(tellingLine(failure).text)].join("\n");
  return key(one) === key(other);
}
