import { expect, it } from "vitest";
import { paths, read } from "./repository.ts";
import { type SourceText, textsOf } from "./texts.ts";

type Rule = {
  readonly words: RegExp;
  readonly kinds: readonly SourceText["kind"][];
  /** What to write in their place. */
  readonly instead: string;
  /** Files that mean something else by the word, each with the reason. */
  readonly except?: Readonly<Record<string, string>>;
};

/** One name stands for one concept (docs/glossary.md): these words stood for others, or are no plain English. */
const rules: readonly Rule[] = [
  {
    words: /\blook(s|ed|ing)?\b(?! (like|random))/i,
    kinds: ["title"],
    instead: "observation, polling; search or check for other things",
  },
  {
    words:
      /\b(an?|each|every|next|last|first|second|third|later|two|which|that|these|good|whole) looks?\b(?! (like|random|the same))/i,
    kinds: ["comment"],
    instead: "observation",
  },
  {
    words: /\b(told|tells?|telling)\b/i,
    kinds: ["title", "comment"],
    instead: "the verb that is meant: emitted, recorded, reported, shown, distinguished",
  },
  {
    words: /\b(desk|deck|breather|hold-back|left-behind|waiting line)\b/i,
    kinds: ["title", "comment"],
    instead: "harness, stack, yield to event loop, replay sorter, stale jobs, semaphore",
    except: { "services/gateway/src/config.test.ts": "deck.example.com is the name of a host" },
  },
  {
    words: /\bbench(es)?\b|Bench/,
    kinds: ["title", "comment", "name"],
    instead: "harness, for the set-up of a test",
    except: {
      "test/bench/": "the benchmark",
    },
  },
  {
    words: /\bgone on with\b/,
    kinds: ["title", "comment"],
    instead: "continued, taken over",
  },
  {
    words: /^(who|whoever|what)\b/i,
    kinds: ["title"],
    instead: "a subject: a caller that …, an event that …",
  },
  {
    words:
      /^(Who|Whoever|As|Nor|Less|So (many|much|long)|By (what|which)|With what)\b|\bwhoever\b|(^|[.!?] )(Of|Told)\b/,
    kinds: ["comment"],
    instead: "a sentence with its subject first",
  },
  {
    words: /^(Told|Seen|Place|Looks?|Things?|Desk|Deck|Book|Bell)$/,
    kinds: ["name"],
    instead: "a name that says which",
  },
];

const sources = paths.filter((path) => /\.(ts|tsx|mjs|proto)$/.test(path) && path !== "test/docs/wording.test.ts");

it("comments, titles of tests and names of types use the words of the glossary, in plain English", () => {
  const found = sources.flatMap((path) => {
    const source = read(path);
    return textsOf(path, source).flatMap((text) => {
      const line = () => source.slice(0, text.start).split("\n").length;
      return brokenRules(path, text).map((why) => `${path}:${line()}: ${why}`);
    });
  });
  expect(found).toEqual([]);
});

it("no exception is kept that nothing needs", () => {
  const needless = rules.flatMap((rule) =>
    Object.keys(rule.except ?? {}).filter((prefix) => {
      const files = sources.filter((path) => path.startsWith(prefix));
      return !files.some((path) =>
        textsOf(path, read(path)).some((text) => breaks({ ...rule, except: {} }, path, text)),
      );
    }),
  );
  expect(needless).toEqual([]);
});

it.each<[SourceText["kind"], string, string, boolean]>([
  ["comment", "a.ts", "// The last look showed it.", false],
  ["comment", "a.ts", "/** Lines that look like an error. */", true],
  ["comment", "a.ts", "/**\n * The caller\n * is told why.\n */", false],
  ["comment", "a.ts", "// The first line is fine,\n// and the second is told.", false],
  ["comment", "a.proto", "// Of a loop.\nint32 loop = 1;", false],
  ["comment", "a.proto", "string name = 1; // Who did it.", false],
  ["comment", "a.ts", "// So many lines are read.", false],
  ["comment", "a.ts", "// It ends, whoever began it.", false],
  ["comment", "a.ts", "/** How many lines are read, so many at once. */", true],
  ["comment", "a.ts", "// The set-up of a bench.", false],
  ["comment", "test/bench/bench-here.long.test.ts", "// The set-up of a bench.", true],
  ["title", "a.ts", 'it("is told once", () => {});', false],
  ["title", "a.ts", 'it("a session is gone on with", () => {});', false],
  ["title", "a.ts", 'describe("who asks", () => {});', false],
  ["title", "a.ts", 'it.skipIf(isSlow)("is told once", () => {});', false],
  ["title", "a.ts", 'it.each([["what is lost", 1]])("%s is found", () => {});', false],
  ["title", "a.ts", 'it.each([{ title: "is told" }])("$title", () => {});', false],
  ["title", "a.ts", "it(`is told once`, () => {});", false],
  ["title", "a.ts", 'it("is emitted once", () => {});', true],
  ["name", "a.ts", "type Told = string;", false],
  ["name", "a.ts", "class Seen {}", false],
  ["name", "a.ts", "type SentFrames = { readonly Told: string };", true],
])("a %s in %s: %s", (kind, path, source, isGood) => {
  const texts = textsOf(path, source).filter((text) => text.kind === kind);
  expect(texts.flatMap((text) => brokenRules(path, text))).toHaveLength(isGood ? 0 : 1);
});

function brokenRules(path: string, text: SourceText): string[] {
  return rules.filter((rule) => breaks(rule, path, text)).map(({ instead }) => `"${text.text}" (write: ${instead})`);
}

function breaks({ words, kinds, except = {} }: Rule, path: string, { kind, text }: SourceText): boolean {
  if (!kinds.includes(kind) || Object.keys(except).some((prefix) => path.startsWith(prefix))) return false;
  return words.test(text);
}
