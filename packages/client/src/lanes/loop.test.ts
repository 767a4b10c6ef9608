import { expect, it } from "vitest";
import { errorLine, failedTries, failureTexts, firstFailure, isErrorLine, logOf, ticksOf } from "./loop.ts";
import type { Step } from "./step.ts";

const step = (
  kind: string,
  subject: string,
  startedAt: number,
  endedAt: number,
  outcome: Step["outcome"] = "succeeded",
): Step => ({
  kind,
  subject,
  instance: "",
  startedAt,
  endedAt,
  outcome,
  error: "",
  errorCode: "",
  isUntimed: false,
  isCached: false,
  position: `${startedAt}`,
  endPosition: `${endedAt}`,
});

it("the first failure is the one that ended first", () => {
  const [build, deploy] = [step("build", "web", 0, 50, "failed"), step("deploy", "", 10, 90, "failed")];
  expect(firstFailure([deploy, build, step("test", "", 0, 10)])).toBe(build);
  expect(firstFailure([step("build", "web", 0, 50)])).toBeUndefined();
});

it("a step that succeeded when it was tried again is no failure", () => {
  const tries = [step("sync", "web", 0, 10, "failed"), step("sync", "web", 500, 510)];
  const build = step("build", "api", 600, 700, "failed");
  expect(firstFailure([...tries, build])).toBe(build);
  expect(failedTries([...tries, step("sync", "web", 900, 910, "failed")], tries[0] ?? build)).toBe(2);
});

it("a log is that of the step, or all of it where the upstream does not say whose it is", () => {
  const line = (text: string, task: string, subtask = "") => ({ text, task, subtask });
  const log = [line("web 1\n", "Build-2", "web"), line("api 1\n", "Build-2", "api"), line("apply\n", "Deploy-2", "0")];
  expect(logOf(log, { kind: "build", subject: "api" })).toBe("api 1\n");
  expect(logOf(log, { kind: "deploy", subject: "" })).toBe("apply\n");
  expect(logOf([line("a", ""), line("b", "")], { kind: "deploy", subject: "" })).toBe("ab");
});

it("a log begins at what looks like the error, else at the error's text, else at its end", () => {
  expect(errorLine(["ok", "error: nope", "exit status 3"], "exit status 3")).toBe(1);
  expect(errorLine(["ok", "exit status 3", "bye"], "exit status 3")).toBe(1);
  expect(errorLine(["a", "b"], "")).toBe(1);
});

it("a count of no errors looks like none", () => {
  const lines = ["0 failed, 3 passed", "no errors", "1 failed", "Error: nope", "it cannot be", "terror"];
  expect(lines.filter(isErrorLine)).toEqual(["1 failed", "Error: nope", "it cannot be"]);
});

it.each([
  [
    "kubectl apply: exit status 1",
    "DEPLOY_X",
    ' - ok\nerror: no matches for kind "Deploymint"\n',
    ['no matches for kind "Deploymint"', "kubectl apply: exit status 1"],
  ],
  ["kubectl: exit status 1", "X", " - error: no\nkubectl: exit status 1\n", ["no"]],
  ["", "BUILD_X", "fatal: no such file\n", ["no such file"]],
  ["BUILD_X", "BUILD_X", "error:\n", ["error:", "BUILD_X"]],
  [
    "1/2 deployment(s) failed",
    "STATUSCHECK_X",
    "deployment/web failed. Error: back-off\n",
    ["deployment/web failed. Error: back-off", "1/2 deployment(s) failed"],
  ],
  ["kubectl apply: exit status 1", "", "applied\n", ["kubectl apply: exit status 1"]],
  ["npm failed\nENOENT: a.json\nsee docs", "X", "ENOENT: a.json\nfailed too\n", ["npm failed", "see docs"]],
  ["", "X", "", []],
])(
  "of the error %j with code %s the page says each text once, the most informative one first",
  (error, code, output, texts) => {
    expect(failureTexts(error, code, output)).toEqual(texts);
  },
);

it("an axis has round ticks, no more than there is room for", () => {
  expect(ticksOf(2_300, 6)).toEqual([0, 500, 1_000, 1_500, 2_000]);
  expect(ticksOf(0, 6)).toEqual([0]);
  expect(ticksOf(1, 6)).toEqual([0, 1]);
});
