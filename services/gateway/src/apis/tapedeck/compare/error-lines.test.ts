import type { EventJson } from "@tapedeck/shared/events/json";
import { expect, it } from "vitest";
import { errorLines } from "./error-lines.ts";

const step = { kind: "build", subject: "web", instance: "", runner: 1, loop: 2 };
const written = (text: string, detail: object = {}, more: object = {}) =>
  ({
    position: "383600-t3k9x2",
    channel: "v2",
    detail: { text, task: "Build-2", subtask: "web", ...detail },
    ...more,
  }) as unknown as EventJson;
const linesOf = (...events: EventJson[]) => errorLines(events, step).map(({ value }) => value);

it("are those of the step that look like an error, each once and without colours", () => {
  const red = `${String.fromCharCode(27)}[31m`;
  expect(
    linesOf(
      written("Building [web]...\n"),
      written(`${red}main.go:3: syntax error: x\r\n`),
      written("main.go:3: syntax error: x\nexit status 1\nfatal: gone\n"),
    ),
  ).toEqual(["main.go:3: syntax error: x", "fatal: gone"]);
});

it("are not those of other artifacts, phases, loops and applications", () => {
  expect(
    linesOf(
      written("error: api", { subtask: "api" }),
      written("error: deploy", { task: "Deploy-2", subtask: "" }),
      written("error: earlier", {}, { operation: { runner: 1, loop: 1 } }),
      written("error: app", { task: "", subtask: "" }, { channel: "logs" }),
      written("error: nothing", { noise: true }),
      written("error: own", {}, { operation: { runner: 1, loop: 2 } }),
      written("error: of nobody", { task: "", subtask: "" }),
    ),
  ).toEqual(["error: own", "error: of nobody"]);
});

it("are not those of another job of a Vagrant server", () => {
  const ofJob = (job: string, text: string) =>
    ({
      position: "383600-t3k9x2",
      channel: "J1",
      kind: "terminal.written",
      subject: job,
      detail: { text },
    }) as unknown as EventJson;
  const up = { kind: "command", subject: "up", instance: "J1", runner: 0, loop: 0 };
  const lines = errorLines([ofJob("J1", "error: no such box"), ofJob("J2", "error: no space left")], up);
  expect(lines.map(({ value }) => value)).toEqual(["error: no such box"]);
});
