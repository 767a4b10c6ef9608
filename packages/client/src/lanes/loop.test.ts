import { expect, it } from "vitest";
import { failedTries, firstFailure, isErrorLine, lineOfCause, logOf, ticksOf } from "./loop.ts";
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
  cause: undefined,
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

it("a step that was stopped because of another is no first failure", () => {
  const cancelled = { text: "context canceled", reason: "cancelled", group: "", file: null, line: null, advice: null };
  const stopped = {
    ...step("build", "web", 0, 40, "failed"),
    cause: { ...cancelled, phase: "", subject: "", tries: 1 },
  };
  const build = step("build", "api", 0, 50, "failed");
  expect(firstFailure([stopped, build])).toBe(build);
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

it("a log begins at the line that is the cause, however it is spaced, or has more around it", () => {
  expect(lineOfCause(["ok", "#11 4.870 error:  nope", "error: nope ", "bye"], "error: nope")).toBe(2);
  expect(lineOfCause(["ok", "#11 4.870 error:  nope", "bye"], "error: nope")).toBe(1);
  expect(lineOfCause(["ok", ' - stderr: "error: no \\"web\\"\\n"'], 'error: no "web"')).toBe(1);
  expect(lineOfCause(["a", "b"], "error: nope")).toBe(-1);
  expect(lineOfCause(["a", ""], "")).toBe(-1);
});

it("a count of no errors looks like none", () => {
  const lines = ["0 failed, 3 passed", "no errors", "1 failed", "Error: nope", "it cannot be", "terror"];
  expect(lines.filter(isErrorLine)).toEqual(["1 failed", "Error: nope", "it cannot be"]);
});

it("an axis has round ticks, no more than there is room for", () => {
  expect(ticksOf(2_300, 6)).toEqual([0, 500, 1_000, 1_500, 2_000]);
  expect(ticksOf(0, 6)).toEqual([0]);
  expect(ticksOf(1, 6)).toEqual([0, 1]);
});
