import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FailuresHarness, startFailuresHarness } from "./failures-harness.ts";

// Whatever the budget, no answer has a heading without content, and each tool gives what it is for.

let harness: FailuresHarness;
beforeAll(async () => {
  harness = await startFailuresHarness();
});
afterAll(() => harness[Symbol.asyncDispose]());

type Case = { readonly tool: string; readonly args: (source: string) => Record<string, unknown>; readonly has: RegExp };

/** `has`: the least of an answer about any failure. */
const cases: readonly Case[] = [
  { tool: "why_failed", args: (source) => ({ source }), has: /^ {2}(Cause|Its error)[^\n]*:\n\| \S/m },
  { tool: "wait_for_loop", args: () => ({ after: "start" }), has: /: (failed|succeeded)/ },
  { tool: "compare", args: (left) => ({ left, right: "alice/p25" }), has: /^1\. \w|No difference|\S+: failed/m },
  {
    tool: "read_output",
    args: (source) => ({ source }),
    has: /^Output, up to the newest:\n\| |^No output is recorded/m,
  },
  { tool: "search_events", args: (source) => ({ source }), has: /^[0-9a-z]+-[0-9a-z]+ \S+ alice\//m },
  { tool: "search_events", args: () => ({ text: "failed" }), has: /newest first:\nalice\// },
  { tool: "list_sources", args: () => ({}), has: /^alice\/p\d+b?\/skaffold: /m },
  { tool: "get_state", args: (source) => ({ source }), has: /^\{"v1":/m },
  { tool: "stats", args: () => ({ about: "failures", group: ["error", "reason"] }), has: /^\{"error":/m },
  { tool: "run_sql", args: () => ({ sql: "select * from failures" }), has: /^\[.*\n\[/m },
];

const otherHeading =
  /^(Left out|Position|Ask again|What differs|Beside|Output|Errors)\b|^ {2}(Cause|Its|The tool|Failed first)\b/;

/** A heading at the end, or before another one of its level, has no content. */
function emptySections(text: string): string[] {
  const lines = text.split("\n");
  return lines.filter((line, at) => {
    const next = lines[at + 1] ?? "";
    const isHeading = line.endsWith(":") && !line.startsWith("| ");
    return isHeading && (next === "" || otherHeading.test(next));
  });
}

it("no answer has an empty section, with any budget and about any failure", async () => {
  const budget = fc.oneof(fc.integer({ min: 1_000, max: 2_000 }), fc.integer({ min: 1_000, max: 20_000 }));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...cases),
      fc.constantFrom(...harness.projects),
      budget,
      async ({ tool, args, has }, project, tokens) => {
        const text = await harness.mcp.ask(tool, { ...args(`alice/${project}`), tokens });
        expect(emptySections(text), text).toEqual([]);
        expect(text, text).toMatch(has);
        expect(Buffer.byteLength(text), text).toBeLessThanOrEqual(tokens * 2.2);
      },
    ),
    {
      numRuns: 150,
      examples: cases.flatMap((one) => harness.projects.map((project) => [one, project, 1_000] as const)) as never,
    },
  );
});

it("an answer names what it leaves out, and how to get it", async () => {
  for (const project of harness.projects) {
    const [small, whole] = [
      await harness.mcp.ask("why_failed", { source: `alice/${project}`, tokens: 1_000 }),
      await harness.mcp.ask("why_failed", { source: `alice/${project}`, tokens: 20_000 }),
    ];
    const content = (text: string) =>
      text.split("\n").filter((line) => !/^(Left out|Position|Ask again|Page).*: /.test(line));
    if (content(small).join("\n") !== content(whole).join("\n"))
      expect(small, small).toMatch(/^Left out: .*(`tokens`|`read_output`)/m);
  }
});

it("a budget that can't hold an answer is refused", async () => {
  const { text, isError } = await harness.mcp.call("why_failed", { tokens: 999 });
  expect([isError, text]).toEqual([true, expect.stringMatching(/`tokens`.*1000.*Arguments of why_failed: /s)]);
});
