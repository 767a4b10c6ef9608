import { Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import { expect, it } from "vitest";
import { causeReader } from "./causes.ts";

const signal = new AbortController().signal;
const causeWith = (text: string) => ({
  text,
  reason: "other",
  group: "",
  file: "",
  advice: "",
  phase: "",
  subject: "",
});
const step = (kind: string, position: number, text = "", subject = "web") =>
  Operation.fromPartial({
    kind,
    subject,
    outcome: "failed",
    start_position: `p${position}0`,
    end_position: `p${position}1`,
    ...(text !== "" && { cause: causeWith(text) }),
  });

/** What is known of a loop that failed at this time, where query has these answers, one after the other. */
async function causeOf(answers: readonly (readonly Operation[])[], { recordedAt = Date.now(), kind = "loop" } = {}) {
  let calls = 0;
  const listOperations = async () => {
    const items = answers[Math.min(calls++, answers.length - 1)] ?? [];
    return { items: items.toReversed(), position: "" } as never;
  };
  const operation = { workspace: "default", session: "s", kind, runner: 1, loop: kind === "loop" ? 1 : 0 };
  const at = { position: "p11", recordedAt, oldestRecordedAt: recordedAt };
  return causeReader({ listOperations })({ ...operation, ...at }, signal);
}

it("a message waits no longer for its cause when the log's clock is ahead", async () => {
  // A delay of an hour would end this test.
  expect(await causeOf([[]], { recordedAt: Date.now() + 3_600_000 })).toBe(undefined);
});

it("a loop that Skaffold reports as failed once more for each retry has the step that failed, and its tries", async () => {
  const tries = [1, 2, 3, 4].map((at) => step("sync", at, "error: unable to upgrade connection"));
  // Its end is that of the last report.
  const loop = { ...step("loop", 9, "error: unable to upgrade connection", ""), start_position: "p00" };
  expect(await causeOf([[loop, ...tries]])).toEqual({
    what: "sync web (4 tries)",
    text: "error: unable to upgrade connection",
    place: "",
  });
});

it("a loop whose failed step is recorded after its end is asked about until that step is known", async () => {
  const text = "./main.go:10:64: undefined: total";
  const loop = { ...step("loop", 1, text, ""), start_position: "p00" };
  expect(await causeOf([[loop], [loop, step("build", 2, text)]])).toMatchObject({ what: "build web", text });
  // Without one the cause is known alone.
  expect(await causeOf([[loop]])).toMatchObject({ what: "", text });
});

it("a piece of output that says nothing is no cause, unless all that the failure printed has been read", async () => {
  const loop = { ...step("loop", 2, "worker ->", ""), start_position: "p00" };
  const halfRead = [loop, step("deploy", 1, "worker ->", "")];
  expect(await causeOf([halfRead])).toEqual({ what: "deploy", text: "", place: "" });
  const whole = [loop, step("deploy", 1, 'error: no matches for kind "Deploymint"', "")];
  expect(await causeOf([halfRead, whole])).toMatchObject({ text: 'error: no matches for kind "Deploymint"' });
  expect(await causeOf([halfRead], { recordedAt: Date.now() - 60_000 })).toMatchObject({ text: "worker ->" });
});

it("a command whose output is recorded after its end is asked about again, for less than a second", async () => {
  const began = Date.now();
  const silent = step("command", 1, "The command responded with a non-zero exit status.", "up");
  const told = step("command", 1, "web2: E: Unable to locate package nope", "up");
  expect(await causeOf([[], [silent], [told]], { kind: "command" })).toMatchObject({
    what: "",
    text: told.cause?.text,
  });
  expect(await causeOf([[silent]], { kind: "command", recordedAt: began - 500 })).toMatchObject({
    text: silent.cause?.text,
  });
});

it("a pod has the cause of that of its apps which failed first", async () => {
  const others = [step("app", 0, "exited with 9", "u-2/batch"), step("app", 3, "exited with 15", "u-1/sidecar")];
  const pod = { ...step("pod", 1, "", "u-1"), start_position: "p00" };
  const app = step("app", 0, "exited with 7", "u-1/batch");
  expect(await causeOf([[...others, app, pod]], { kind: "pod" })).toMatchObject({
    text: "batch: exited with 7",
  });
});
