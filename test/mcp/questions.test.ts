import { afterAll, beforeAll, expect, it } from "vitest";
import { type FailuresHarness, startFailuresHarness } from "./failures-harness.ts";
import type { McpClient } from "./mcp-client.ts";

// Questions about failures that a real Skaffold reported, as an assistant would ask them: what it asks next is made of the answer
// before. The expected answers were read from the recordings by a person (labelled-loops.ts).

let mcp: McpClient;
let harness: FailuresHarness;
beforeAll(async () => {
  harness = await startFailuresHarness();
  ({ mcp } = harness);
});
afterAll(() => harness[Symbol.asyncDispose]());

type Call = readonly [tool: string, args: Record<string, unknown>];
type Question = {
  readonly question: string;
  /** Each call, from the answer before it. */
  readonly calls: readonly ((before: string) => Call)[];
  readonly answer: RegExp;
};

const call =
  (tool: string, args: Record<string, unknown> = {}) =>
  (): Call => [tool, args];
const why = (name: string) => call("why_failed", name.includes("#") ? { loop: name } : { source: name });
const endIn = (text: string) => /: failed after .*, ended at (\S+)$/m.exec(text)?.[1] ?? "";
const found = (text: string, what: RegExp) => what.exec(text)?.[1] ?? "";

const questions: readonly Question[] = [
  {
    question: "Why did the first build of p03 fail?",
    calls: [why("alice/p03")],
    answer: /build "worker".*\| error: worker does not compile/s,
  },
  {
    question: "What is broken in p04 now?",
    calls: [why("alice/p04")],
    answer: /render.*MalformedYAMLError: yaml: line 1/s,
  },
  {
    question: "Why did loop 2 of p04 fail?",
    calls: [why("alice/p04#2")],
    answer: /deploy, code "DEPLOY_KUBECTL_USER_ERR".*no matches for kind "Deploymint"/s,
  },
  {
    question: "Who may not deploy in p04b?",
    calls: [why("alice/p04b")],
    answer: /"permission".*deployments.apps "web" is forbidden/s,
  },
  {
    question: "How often did Skaffold try the sync in p10?",
    calls: [why("alice/p10#3")],
    answer: /sync "web" \(4 tries\).*container not found/s,
  },
  {
    question: "Which deployment was not ready in time in p10?",
    calls: [why("alice/p10")],
    answer: /check, code "STATUSCHECK_UNKNOWN".*deployment "api" exceeded its progress deadline/s,
  },
  {
    question: "How long did p10b wait for its pods?",
    calls: [why("alice/p10b")],
    answer: /STATUSCHECK_DEADLINE_EXCEEDED.*could not stabilize within 20s/s,
  },
  {
    question: "Why does `skaffold build` of p22 fail?",
    calls: [why("alice/p22")],
    answer: /"disk full".*no space left on device/s,
  },
  {
    question: "What does p23's manifest lack?",
    calls: [why("alice/p23")],
    answer: /containers\[0\]\.image: Required value/,
  },
  {
    question: "Which build of p24 ran out of memory?",
    calls: [why("alice/p24")],
    answer: /build "worker".*out of memory/s,
  },
  {
    question: "Where was the build of worker when p24's failed, and where is it now?",
    calls: [
      why("alice/p24"),
      (text) => ["get_state", { source: "alice/p24", at: endIn(text), path: "v1.buildState.artifacts" }],
    ],
    answer: /"worker":"Failed"/,
  },
  {
    question: "With which code did p25's test end?",
    calls: [why("alice/p25")],
    answer: /TEST_CUSTOM_CMD_RUN_NON_ZERO_EXIT_ERR.*exit status 7/s,
  },
  {
    question: "Was p25 good again in the loop after its failure?",
    calls: [why("alice/p25"), (text) => ["wait_for_loop", { source: "alice/p25", after: endIn(text), seconds: 5 }]],
    answer: /loop 3 \([^)]*\): succeeded after 1\.0 s/,
  },
  {
    question: "What could p26 not be synced into?",
    calls: [why("alice/p26")],
    answer: /sync "web".*container not found \("web"\)/s,
  },
  {
    question: "Which check of p28 failed, while which others ran?",
    calls: [why("alice/p28")],
    answer: /verify "api-check".*\| \[smoke\] fine\n\| \[api-check\] no answer\n\| \[load\] done/s,
  },
  {
    question: "What was missing when p29 ran its seed?",
    calls: [why("alice/p29")],
    answer: /exec "seed".*no such table/s,
  },
  {
    question: "Why did p30's verify not begin?",
    calls: [why("alice/p30")],
    answer: /"image not found".*pulling image from repository/s,
  },
  {
    question: "Which line of which test failed in p31?",
    calls: [why("alice/p31")],
    answer: /test_orders\.py", line 10.*AssertionError: 490 != 0/s,
  },
  {
    question: "Which type error had web in p31 before that?",
    calls: [call("read_output", { source: "alice/p31" })],
    answer: /build "web" failed.*src\/page\.ts\(4,46\): error TS2345/s,
  },
  {
    question: "What did Skaffold build in the loop with that type error?",
    calls: [
      call("search_events", { text: "TS2345" }),
      (text) => ["read_output", { loop: found(text, /loop 4 \(([^)]+)\)/) }],
    ],
    answer: /loop 4\n.*\| Building \[web\]\.\.\..*\| Skipping test and deploy due to build error/s,
  },
  {
    question: "Where else did anything run out of memory?",
    calls: [call("search_events", { text: "out of memory" })],
    answer: /2 match.*alice\/p27\/skaffold, loop 2.*alice\/p24\/skaffold, loop 3/s,
  },
  {
    question: "Which step waited for deployments before it failed?",
    calls: [call("search_events", { text: "deployments to stabilize" })],
    answer: /in its output of deploy(, at \S+)?:\n\| /,
  },
  {
    question: "What fails most often?",
    calls: [call("stats", { about: "failures", group: ["reason"] })],
    answer: /\{"reason":"not found","failures":3.*\{"reason":"out of memory","failures":2/s,
  },
  {
    question: "What changed between p27's failed loop and the next one?",
    calls: [why("alice/p27"), (text) => ["compare", { left: found(text, /loop 2 \(([^)]+)\)/), right: "alice/p27#3" }]],
    answer: /failed after 4\.1 s.*succeeded after 1\.9 s.*1\. failure: "build api failed: error: out of memory/s,
  },
];

it.each(questions)("$question", async ({ calls, answer }) => {
  expect(calls.length).toBeLessThanOrEqual(3);
  let text = "";
  for (const next of calls) {
    const [tool, args] = next(text);
    text = await mcp.ask(tool, args);
    expect(Buffer.byteLength(text) / 2.2).toBeLessThan(4_000);
  }
  expect(text, text).toMatch(answer);
});

it("at least twenty questions are asked", () => expect(questions.length).toBeGreaterThanOrEqual(20));
