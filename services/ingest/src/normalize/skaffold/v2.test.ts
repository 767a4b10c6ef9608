import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { describe, expect, it } from "vitest";
import type { Fact } from "../fact.ts";
import type { FrameReader } from "../normalizer.ts";
import { frameReader } from "./frame-reader.ts";
import { logs } from "./logs.ts";
import { v2 } from "./v2.ts";

const eventType = messageType("proto.v2.Event");
const frame = (event: object) => fromGatewayJson(eventType, { timestamp: "2026-11-20T15:51:04Z", ...event } as never);

const meta = (runID: string) => ({ metaEvent: { metadata: { runID } } });
const task = (name: string, iteration: number, status: string, actionableErr?: object) => ({
  taskEvent: { id: `${name}-${iteration}`, task: name, iteration, status, ...(actionableErr && { actionableErr }) },
});
const loop = (iteration: number) => task("DevLoop", iteration, "InProgress");
const log = (message: string, rest: object = {}) => ({ skaffoldLogEvent: { message, subtask_id: "-1", ...rest } });

function last(...events: object[]): Fact {
  const { read } = frameReader(v2);
  return events.map((event) => read(frame(event))[0]).at(-1) ?? expect.fail();
}

function reported(fact: Fact): string {
  const { operation } = fact;
  const place = operation && `${operation.kind}:${operation.subject} ${operation.runner}/${operation.loop}`;
  return [fact.kind, fact.subject ?? "", place, fact.summary].join(" | ");
}

const actionableErr = { errCode: "UNKNOWN_ERROR", message: "not YAML\n" };
const step = (name: string, status: string) => ({
  buildSubtaskEvent: { id: "web", task_id: "Build-1", artifact: "web", step: name, status },
});

const cases: { title: string; event: object; gives: string }[] = [
  {
    title: "render phase",
    event: task("Render", 1, "InProgress"),
    gives: "render.started |  | render: 1/1 | render started",
  },
  {
    title: "render done",
    event: task("Render", 1, "Succeeded"),
    gives: "render.succeeded |  | render: 1/1 | manifests rendered",
  },
  {
    title: "render failed",
    event: task("Render", 1, "Failed", actionableErr),
    gives: "render.failed |  | render: 1/1 | render failed: not YAML",
  },
  {
    title: "render canceled",
    event: task("Render", 1, "Canceled"),
    gives: "render.canceled |  | render: 1/1 | render canceled",
  },
  {
    title: "one renderer",
    event: { renderEvent: { id: "0", task_id: "Render-1", status: "InProgress" } },
    gives: "mirror.received |  | loop: 1/1 | renderEvent Render-1 0 InProgress",
  },
  {
    title: "cache hit",
    event: step("Cache", "Succeeded"),
    gives: "build.cached | web | build:web 1/1 | web found in the cache",
  },
  {
    title: "cache miss",
    event: step("Cache", "Failed"),
    gives: "mirror.received |  | loop: 1/1 | buildSubtaskEvent Build-1 web Failed",
  },
  {
    title: "a build, which v1 reports",
    event: step("Build", "Succeeded"),
    gives: "mirror.received |  | loop: 1/1 | buildSubtaskEvent Build-1 web Succeeded",
  },
  {
    title: "verify",
    event: { verifyEvent: { id: "smoke", status: "InProgress" } },
    gives: "verify.started | smoke | verify:smoke 1/1 | verify of smoke started",
  },
  {
    title: "verify failed as a whole",
    event: task("Verify", 0, "Failed", actionableErr),
    gives: "verify.failed |  | verify: 1/1 | verify of all failed: not YAML",
  },
  {
    title: "all builds failed, before any began",
    event: task("Build", 1, "Failed", actionableErr),
    gives: "build.failed |  | build: 1/1 | build failed: not YAML",
  },
  {
    title: "a build that the user ended, before any of its artifacts began",
    event: task("Build", 1, "Failed", { errCode: "BUILD_UNKNOWN", message: "listing tags: context canceled" }),
    gives: "build.canceled |  | build: 1/1 | build canceled",
  },
  {
    title: "tests failed as a whole",
    event: task("Test", 1, "Failed", actionableErr),
    gives: "test.failed |  | test: 1/1 | tests failed: not YAML",
  },
  {
    title: "deploy failed after it was done",
    event: task("Deploy", 1, "Failed", actionableErr),
    gives: "deploy.failed |  | deploy: 1/1 | deploy failed: not YAML",
  },
  {
    title: "a failed port-forward, without which the loop goes on",
    event: task("PortForward", 1, "Failed", actionableErr),
    gives: "mirror.received |  | loop: 1/1 | taskEvent PortForward-1 Failed",
  },
  {
    title: "verify failed",
    event: { verifyEvent: { id: "smoke", status: "Failed", actionableErr } },
    gives: "verify.failed | smoke | verify:smoke 1/1 | verify of smoke failed: not YAML",
  },
  {
    title: "exec done",
    event: { execEvent: { id: "seed", status: "Succeeded" } },
    gives: "exec.succeeded | seed | exec:seed 1/1 | exec of seed succeeded",
  },
  {
    title: "exec, odd",
    event: { execEvent: { id: "seed", status: "Odd" } },
    gives: "mirror.received |  | loop: 1/1 | execEvent seed Odd",
  },
  {
    title: "Cloud Run",
    event: { cloudRunReadyEvent: { resource: "svc", url: "https://x", ready_revision: "r1" } },
    gives: "resource.ready | svc | loop: 1/1 | svc is ready at https://x",
  },
  {
    title: "log of an artifact",
    event: log("\u001b[32m - web:\u001b[0m\n", { subtask_id: "web" }),
    gives: "log.written | web | loop: 1/1 | - web:",
  },
  { title: "log of no one", event: log("hi\n"), gives: "log.written |  | loop: 1/1 | hi" },
  { title: "log of a deployer", event: log("hi\n", { subtask_id: "0" }), gives: "log.written |  | loop: 1/1 | hi" },
  {
    title: "other task",
    event: task("Build", 1, "Succeeded"),
    gives: "mirror.received |  | loop: 1/1 | taskEvent Build-1 Succeeded",
  },
  {
    title: "port, which v1 reports",
    event: { portEvent: { task_id: "PortForward-1", localPort: 1 } },
    gives: "mirror.received |  | loop: 1/1 | portEvent PortForward-1",
  },
  {
    title: "a container's line in the wrong stream",
    event: { applicationLogEvent: { message: "x" } },
    gives: "mirror.received |  | loop: 1/1 | applicationLogEvent",
  },
  { title: "no event", event: {}, gives: "mirror.received |  | loop: 1/1 | empty event" },
];

it("an action that Skaffold ends because another one failed is canceled", () => {
  const exec = (id: string, status: string, message = "") => ({
    execEvent: { id, status, ...(message && { actionableErr: { errCode: "UNKNOWN_ERROR", message } }) },
  });
  const begun = [meta("a"), task("Exec", 0, "InProgress"), exec("seed", "InProgress"), exec("migrate", "InProgress")];
  const ended = exec("migrate", "Failed", "context canceled");
  expect(last(...begun, exec("seed", "Failed", "exit 4"), ended).kind).toBe("exec.canceled");
  // None failed before: the user may have ended it.
  expect(last(...begun, ended).kind).toBe("exec.failed");
  expect(last(...begun, exec("seed", "Failed", "exit 4"), exec("migrate", "Failed", "no such table")).kind).toBe(
    "exec.failed",
  );
});

describe("a task whose step failed", () => {
  const begun = (name: string) => [meta("a"), loop(1), meta("a"), task(name, 1, "InProgress")];
  const end = (name: string) => task(name, 1, "Failed", actionableErr);

  it.each<[string, string, object[]]>([
    ["its build", "Build", [step("Build", "Failed")]],
    ["its canceled build", "Build", [step("Build", "Canceled")]],
    ["its tests", "Test", [{ testEvent: { id: "0", status: "Failed" } }]],
    ["its deploy", "Deploy", [{ deploySubtaskEvent: { id: "0", status: "Failed" } }]],
    ["its status check", "Deploy", [task("StatusCheck", 1, "InProgress"), task("StatusCheck", 1, "Failed")]],
  ])("is no second failure: %s", (_, name, failed) => {
    expect(last(...begun(name), ...failed, end(name)).kind).toBe("mirror.received");
    expect(afterRestart([...begun(name), ...failed], end(name))).toBe("mirror.received");
  });

  it("is not one that was not in the cache, also after a restart", () => {
    const events = [...begun("Build"), step("Cache", "Failed")];
    expect(last(...events, end("Build")).kind).toBe("build.failed");
    expect(afterRestart(events, end("Build"))).toBe("build.failed");
  });

  it("is not one that a client put into the stream, also after a restart", () => {
    const injected = step("Build", "Failed");
    for (const isRestarted of [false, true]) {
      const [before, restarted] = [frameReader(v2), frameReader(v2)];
      for (const event of [...begun("Build"), injected]) resumeWith(restarted, before, event, event === injected);
      const [fact] = (isRestarted ? restarted : before).read(frame(end("Build")));
      expect(fact.kind).toBe("build.failed");
    }
  });

  /** The kind of an event that is read by a recorder that started after these. */
  function afterRestart(events: readonly object[], event: object): string {
    const [before, after] = [frameReader(v2), frameReader(v2)];
    for (const one of events) resumeWith(after, before, one);
    return after.read(frame(event))[0].kind;
  }

  /** One reads the event, and the other gets what was recorded of it. */
  function resumeWith(after: FrameReader, before: FrameReader, event: object, injected = false): void {
    const bytes = frame(event);
    const { original } = Event.fromPartial({ original: { bytes: Buffer.from(bytes) } });
    const none = Event.decode(new Uint8Array());
    for (const fact of before.read(bytes, injected)) {
      after.resume({ ...none, ...fact, outcome: 0, inferred: false, original, injected });
    }
  }
});

it("a task whose action failed is no second failure", () => {
  const failed = { execEvent: { id: "seed", status: "Failed", actionableErr } };
  const begun = [meta("a"), task("Exec", 0, "InProgress")];
  expect(last(...begun, failed, task("Exec", 0, "Failed", actionableErr)).kind).toBe("mirror.received");
  const again = [task("Exec", 1, "InProgress"), task("Exec", 1, "Failed", actionableErr)];
  expect(last(...begun, failed, task("Exec", 0, "Failed", actionableErr), ...again).kind).toBe("exec.failed");
});

describe("v2, in the first loop of the first runner", () => {
  it.each(cases)("$title", ({ event, gives }) =>
    expect(reported(last(meta("a"), loop(1), meta("a"), event))).toBe(gives),
  );
});

describe("v2", () => {
  const place = (...events: object[]) => {
    const { operation } = last(...events);
    return `${operation?.runner}/${operation?.loop}`;
  };

  it.each<[string, object[], string]>([
    ["nothing before the first metaEvent", [log("hi")], "0/0"],
    ["a runner", [meta("a")], "1/0"],
    ["a loop, with the metaEvent that repeats", [meta("a"), loop(1), meta("a")], "1/1"],
    ["the repeat, although something came between", [meta("a"), loop(1), log("hi"), meta("a")], "1/1"],
    [
      "loops anew for the next runner",
      [meta("a"), loop(1), meta("a"), loop(2), meta("a"), meta("b"), loop(3), meta("b")],
      "2/1",
    ],
    ["a runner right after a loop's start", [meta("a"), loop(1), meta("b")], "2/0"],
    ["a metaEvent without metadata as none", [meta("a"), loop(1), { metaEvent: { entry: "hi" } }], "1/1"],
    ["without ids: the repeat by its place", [meta(""), loop(1), meta(""), log("hi"), meta(""), loop(2)], "2/1"],
  ])("counts %s", (_, events, gives) => expect(place(...events)).toBe(gives));

  it.each<[string, object[], object[]]>([
    ["the repeat", [meta("a"), loop(1)], [meta("a"), loop(2), meta("a"), meta("b")]],
    ["the next runner", [meta("a"), loop(1), meta("a"), task("Deploy", 1, "InProgress")], [meta("b"), loop(2)]],
  ])("knows %s after a restart right before it, without the runner's id", (_, events, next) => {
    const before = frameReader(v2);
    const after = frameReader(v2);
    for (const event of events) {
      const [fact] = before.read(frame(event));
      after.resume({ ...Event.decode(new Uint8Array()), ...fact, outcome: 0, inferred: false, original: undefined });
    }
    const rest = next.map(frame);
    expect(rest.map((bytes) => after.read(bytes))).toEqual(rest.map((bytes) => before.read(bytes)));
  });

  it("keeps printed text verbatim, and marks what is empty", () => {
    const printed = "\u001b[1mhi\u001b[0m\r\n";
    expect(last(log(printed, { level: "WARN", task_id: "Build-1", subtask_id: "web" })).detail).toEqual({
      $case: "text",
      value: { text: printed, level: "WARN", task: "Build-1", subtask: "web", pod: "", container: "", noise: false },
    });
    expect(last(log("")).detail).toMatchObject({ value: { noise: true } });
    expect(last(log("\n")).detail).toMatchObject({ value: { noise: false } });
  });
});

describe("logs", () => {
  it("has the lines of containers", () => {
    const line = { containerName: "web", podName: "web-1", prefix: "[web]", message: "hello\n" };
    const [fact] = frameReader(logs).read(frame({ applicationLogEvent: line }));
    expect(fact).toMatchObject({
      kind: "log.written",
      subject: "web",
      summary: "hello",
      detail: { $case: "text", value: { text: "hello\n", pod: "web-1", container: "web" } },
    });
    expect(fact.operation).toBeUndefined();
  });

  it("mirrors what does not belong there", () => {
    expect(frameReader(logs).read(frame(loop(1)))[0].kind).toBe("mirror.received");
    expect(frameReader(logs).read(Uint8Array.of(0xff))[0].kind).toBe("upstream.unreadable");
  });
});
