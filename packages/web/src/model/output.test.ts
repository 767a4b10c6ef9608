import { event } from "@tapedeck/client/lanes/testing/events";
import { expect, it } from "vitest";
import { outputOf } from "./output.ts";

const detail = (text: string, more: object = {}) => ({
  text,
  level: "",
  task: "Build-1",
  subtask: "web",
  pod: "",
  container: "",
  noise: false,
  ...more,
});
const printed = (loop: number, text: string, more: object = {}) =>
  event(loop, "log.written", {
    operation: { kind: "build", subject: "web", runner: 1, loop },
    detail: detail(text, more),
  });
const texts = (...given: Parameters<typeof outputOf>) => outputOf(...given).map(({ text }) => text);

it("is what one loop printed, without colours and empty pieces", () => {
  const esc = String.fromCharCode(27);
  const events = [
    printed(1, `${esc}[31mred${esc}[0m\n`),
    printed(1, "", { noise: true }),
    event(2, "build.failed"),
    printed(2, "other\n"),
  ];
  expect(outputOf(events, { kind: "loop", runner: 1, loop: 1, instance: "" })).toEqual([
    { text: "red\n", task: "Build-1", subtask: "web" },
  ]);
  expect(texts(events, { kind: "loop", runner: 2, loop: 1, instance: "" })).toEqual([]);
});

it("is what the job of a command printed", () => {
  const ofJob = (job: string, text: string) =>
    event(1, "terminal.written", { detail: detail(text, { output: { job, index: 0, stream: "", offset: 0 } }) });
  const events = [ofJob("J1", "one\n"), ofJob("J2", "two\n")];
  expect(texts(events, { kind: "command", runner: 0, loop: 0, instance: "J2" })).toEqual(["two\n"]);
});
