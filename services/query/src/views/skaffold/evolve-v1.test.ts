import { describe, expect, it } from "vitest";
import {
  build,
  call,
  deploy,
  describedBy,
  empty,
  firstLoop,
  fold,
  injected,
  loop,
  port,
  runner,
  runnerV2,
  sync,
  test,
  v1,
  v1After,
} from "./testing/builders.ts";

describe("v1, a new runner", () => {
  it("begins with a fresh state", () => {
    expect(v1After(...firstLoop, runner)).toMatchObject({
      buildState: { artifacts: empty },
      deployState: { status: "Not Started", statusCode: "OK" },
      testState: { status: "Not Started" },
      forwardedPorts: empty,
    });
  });

  it("has the artifacts that v2 reports for the same runner, earlier or later", () => {
    const reported = [runnerV2("a", "web", "api"), runnerV2("b", "web", "worker")];
    const artifacts = { web: "Not Started", worker: "Not Started" };
    expect(v1After(runner, runner, ...reported)).toMatchObject({ buildState: { artifacts } });
    expect(v1After(...reported, runner, runner)).toMatchObject({ buildState: { artifacts } });
    expect(v1After(...reported, runner)).toMatchObject({
      buildState: { artifacts: { web: "Not Started", api: "Not Started" } },
    });
  });

  it("goes back to the flags that the first one had", () => {
    const off = call("AutoBuild", { state: { enabled: false } });
    const described = describedBy({ v1: { buildState: { autoTrigger: true } } });
    const toggled = [described, runner, off.requested, off.accepted];
    expect(v1After(...toggled)).toMatchObject({ buildState: { autoTrigger: false } });
    expect(v1After(...toggled, runner)).toMatchObject({ buildState: { autoTrigger: true } });
  });
});

describe("v1, codes", () => {
  const started = [runner, loop("In Progress")];

  it("names the error of a build when the whole phase has failed", () => {
    const failing = [
      ...started,
      build("web", "In Progress"),
      build("api", "In Progress"),
      build("api", "Failed", "BUILD_USER_ERROR"),
    ];
    const killed = [...failing, build("web", "Failed", "BUILD_CANCELLED")];
    expect(v1After(...failing)).toMatchObject({ buildState: { statusCode: "OK" } });
    expect(v1After(...killed)).toMatchObject({ buildState: { statusCode: "BUILD_USER_ERROR" } });
    expect(v1After(...killed, loop("Failed", "BUILD_UNKNOWN"))).toMatchObject({
      buildState: { statusCode: "BUILD_UNKNOWN" },
    });
    expect(v1After(...killed, loop("Failed"), loop("In Progress"), build("web", "Complete"))).toMatchObject({
      buildState: { statusCode: "OK" },
    });
  });

  it("leaves the build's code alone when something else failed", () => {
    const failed = [
      ...started,
      build("web", "Complete"),
      deploy("Failed", "DEPLOY_UNKNOWN"),
      loop("Failed", "DEPLOY_UNKNOWN"),
    ];
    expect(v1After(...failed)).toMatchObject({
      buildState: { statusCode: "OK" },
      deployState: { status: "Failed", statusCode: "DEPLOY_UNKNOWN" },
    });
  });

  it("keeps the deploy's code while it goes on", () => {
    expect(v1After(...started, deploy("Complete"), deploy("Information"))).toMatchObject({
      deployState: { status: "Information", statusCode: "DEPLOY_SUCCESS" },
    });
  });

  it("never takes one from an injected event", () => {
    const made = [
      deploy("Failed", "DEPLOY_UNKNOWN"),
      test("Failed", "TEST_UNKNOWN"),
      build("web", "Failed", "BUILD_UNKNOWN"),
    ];
    const check = v1({ statusCheckEvent: { status: "Failed", errCode: "STATUSCHECK_UNKNOWN" } });
    expect(v1After(...started, ...[...made, check].map(injected), loop("Failed", "UNKNOWN_ERROR"))).toMatchObject({
      buildState: { artifacts: { web: "Failed" }, statusCode: "OK" },
      testState: { status: "Failed", statusCode: "OK" },
      deployState: { status: "Failed", statusCode: "OK" },
      statusCheckState: { status: "Failed", statusCode: "OK" },
    });
  });

  it("has none before there were any", () => {
    const old = v1({ metaEvent: { entry: "Starting Skaffold: &{Version:v0.40.0}" } });
    expect(v1After(old, deploy("Complete"))).toMatchObject({ deployState: { status: "Complete", statusCode: "OK" } });
  });
});

describe("v1, what a client made up", () => {
  it("starts no runner, no loop and no phase", () => {
    const made = [runner, loop("In Progress"), build("mine", "Whatever")].map(injected);
    expect(v1After(...firstLoop, loop("In Progress"), ...made)).toMatchObject({
      buildState: { artifacts: { web: "Complete", mine: "Whatever" } },
      deployState: { status: "Complete" },
    });
  });

  it("does not count its loop again", () => {
    const made = injected(loop("In Progress"));
    const first = [runner, loop("In Progress"), deploy("Complete"), made, build("web", "Complete")];
    expect(v1After(...first)).toMatchObject({ deployState: { status: "Complete" } });
  });

  it("keeps the name of an unknown artifact through resets", () => {
    const made = injected(build("mine", "Whatever"));
    expect(v1After(...firstLoop, made, loop("In Progress"), build("web", "Complete"))).toMatchObject({
      buildState: { artifacts: { web: "Complete", mine: "Not Started" } },
    });
  });

  it("may be called anything", () => {
    const artifacts = JSON.parse('{"__proto__":"Complete"}');
    const state = fold(runner, loop("In Progress"), v1({ buildEvent: { artifact: "__proto__", status: "Complete" } }));
    expect(JSON.parse(JSON.stringify(state))).toStrictEqual(state);
    expect(Object.keys(state.v1.artifacts)).toEqual(Object.keys(artifacts));
  });

  it.each(["constructor", "toString", "hasOwnProperty"])("is not built again when %s is built first", (name) => {
    // Skaffold before 1.8, which reports no loops.
    const built = [runner, build("web", "In Progress"), build("web", "Complete"), build(name, "In Progress")];
    expect(fold(...built).v1.loop).toBe(fold(...built.slice(0, -1), build("api", "In Progress")).v1.loop);
  });

  it("is not a runner if it bypassed Tapedeck and has no metadata", () => {
    const foreign = v1({ metaEvent: { entry: "hello" } });
    expect(v1After(...firstLoop, foreign)).toEqual(v1After(...firstLoop));
  });
});

describe("v1, ports and debugged containers", () => {
  const started = v1({
    debuggingContainerEvent: { status: "Started", podName: "p", containerName: "c", namespace: "n" },
  });
  const other = v1({
    debuggingContainerEvent: { status: "Started", podName: "q", containerName: "c", namespace: "n" },
  });
  const ended = v1({
    debuggingContainerEvent: { status: "Terminated", podName: "p", containerName: "c", namespace: "n" },
  });

  it("has one event per local port, the last", () => {
    const state = v1After(runner, port(1, "old"), port(2), port(1, "new"));
    expect(state).toMatchObject({ forwardedPorts: { 1: { podName: "new" }, 2: { localPort: 2 } } });
  });

  it("lists a container as often as it started and removes it at once", () => {
    expect(v1After(runner, started, other, started).debuggingContainers).toHaveLength(3);
    expect(v1After(runner, started, other, started, ended).debuggingContainers).toMatchObject([{ podName: "q" }]);
  });

  it("keeps unknown fields", () => {
    const event = v1({ portEvent: { localPort: 1 } });
    // LogEntry 2: Event 4: PortEvent 1: localPort, 99: text.
    const bytes = Buffer.from([0x12, 9, 0x22, 7, 0x08, 1, 0x9a, 0x06, 2, 0x68, 0x69]);
    const original = { ...event.original, type: "proto.LogEntry", bytes, size: 11n, sha256: bytes, head: bytes };
    expect(fold(runner, { ...event, original }).v1.ports[1]?.value).toBe(bytes.subarray(4).toString("base64"));
  });
});

describe("v1, an event that comes twice", () => {
  const twice = [build("web", "Complete"), deploy("Complete"), port(1), test("Complete"), sync("Succeeded")];
  it.each(twice)("changes nothing the second time", (event) => {
    const before = [...firstLoop, loop("In Progress"), event];
    expect(v1After(...before, event)).toEqual(v1After(...before));
  });
});
