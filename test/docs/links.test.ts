import { expect, it } from "vitest";
import { brokenReferences } from "./broken-references.ts";
import { paths, read } from "./repository.ts";

/** Files whose references lead outside this repository: the examples below, and the corpus of secrets. */
const aboutOthers = ["test/docs/links.test.ts", "services/ingest/src/secrets/testing/corpus.ts"];

it("every link and path in Markdown and comments leads to an existing file and heading", () => {
  expect(paths).toEqual(expect.arrayContaining(["README.md", "docs/api.md", ...aboutOthers]));
  const readOwn = (path: string) => (aboutOthers.includes(path) ? "" : read(path));
  expect(brokenReferences({ paths, read: readOwn })).toEqual([]);
});

it.each<[string, string, string, boolean]>([
  ["a file beside it", "docs/a.md", "[b](b.md)", true],
  ["a file that is not there", "docs/a.md", "[c](c.md)", false],
  ["a file from the wrong folder", "README.md", "[b](b.md)", false],
  ["a file above", "docs/a.md", "[r](../src/x.ts)", true],
  ["a folder", "docs/a.md", "[src](../src/)", true],
  ["a heading", "docs/a.md", "[b](b.md#two-words-and-code)", true],
  ["the same heading once more", "docs/a.md", "[b](b.md#again-1)", true],
  ["a heading that is not there", "docs/a.md", "[b](b.md#three)", false],
  ["a heading in a code block", "docs/a.md", "[b](b.md#no-heading)", false],
  ["a heading of its own", "docs/a.md", "# Here\n\n[h](#here)", true],
  ["a heading of its own that is not there", "docs/a.md", "# Here\n\n[h](#there)", false],
  ["a link in a table", "docs/a.md", "| a | b |\n|---|---|\n| x | [c](c.md) |", false],
  ["a link by its definition", "docs/a.md", "See [c].\n\n[c]: c.md", false],
  ["a link without a definition", "docs/a.md", "See [run 01].", false],
  ["a link to elsewhere", "docs/a.md", "[c](https://example.com/c.md)", true],
  ["a link in a code block", "docs/a.md", "```\n[c](c.md)\n```", true],
  ["a path in backticks", "docs/a.md", "`docs/b.md`, `docs/`, `docs/*.md`", true],
  ["a path in backticks that is not there", "docs/a.md", "`services/x.ts`", false],
  ["the end of a source's path in backticks", "docs/a.md", "`views/z.ts`, `views/*.ts`", true],
  ["the end of no source's path", "docs/a.md", "`b/x.ts`", false],
  ["a part of a folder's name", "docs/a.md", "`ews/z.ts`", false],
  ["a pattern that nothing matches", "docs/a.md", "`docs/*.ts`", false],
  ["a path with a placeholder", "docs/a.md", "`docs/<name>/b.md`", true],
  ["a comment", "src/y.ts", "// docs/b.md#two-words-and-code says why (docs/b.md).", true],
  ["a comment with a heading that is not there", "src/y.ts", "// docs/b.md#three says why.", false],
  ["a comment with a file that is not there", "proto/y.proto", "/* docs/c.md */", false],
  ["a comment of the page", "src/y.tsx", "/* docs/c.md */", false],
  ["a comment in settings", "infra/y.yaml", "# docs/b.md#three says why.", false],
  ["a path inside another one", "src/y.ts", 'import "@x/docs/c.ts"; "/api/docs/c.md"', true],
])("knows %s", (_, path, text, isGood) => {
  const files = new Map([
    ["docs/b.md", "# Two words, and `code`\n\n## Again\n\n## Again\n\n```\n# No heading\n```\n"],
    ["src/x.ts", ""],
    ["services/query/src/views/z.ts", ""],
    [path, text],
  ]);
  const broken = brokenReferences({ paths: [...files.keys()], read: (each) => files.get(each) ?? "" });
  expect(broken).toHaveLength(isGood ? 0 : 1);
});
