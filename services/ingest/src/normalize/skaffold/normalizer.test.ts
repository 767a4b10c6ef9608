import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { LogEntry, UserIntentRequest, Event as V1Event } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { describe, expect, it } from "vitest";
import { normalizer } from "./normalizer.ts";

const timestamp = { seconds: 1_795_190_166n, nanos: 5 };

describe("momentOf", () => {
  const timestampOf = normalizer.channels[0]?.timestampOf ?? expect.fail();
  const entry = (seconds: bigint, nanos: number) =>
    LogEntry.encode({ timestamp: { seconds, nanos }, event: undefined, entry: "x" }).finish();

  it("reads nanoseconds", () => expect(timestampOf(entry(timestamp.seconds, 5))).toEqual(timestamp));
  it("finds the time behind other fields", () => {
    const late = Buffer.concat([Buffer.from([0x1a, 1, 0x78]), entry(1n, 2)]);
    expect(timestampOf(late)).toEqual({ seconds: 1n, nanos: 2 });
  });
  it.each([
    ["no time", LogEntry.encode({ timestamp: undefined, event: undefined, entry: "x" }).finish()],
    ["garbage", Uint8Array.of(0xff, 0xff)],
    ["a cut frame", entry(1n, 2).subarray(0, 3)],
    ["nanoseconds beyond a second", entry(1n, 1_000_000_000)],
    ["the year 10000", entry(253_402_300_800n, 0)],
  ])("has none for %s", (_, bytes) => expect(timestampOf(bytes)).toBeUndefined());
});

describe("stateDiffers", () => {
  const v1 = (json: object) => fromGatewayJson(messageType("proto.State"), json as never);
  const base = {
    buildState: { artifacts: { web: "Complete", api: "Failed" }, autoTrigger: true, statusCode: "BUILD_UNKNOWN" },
    metadata: {
      build: {
        builders: [
          { type: "DOCKER", count: 1 },
          { type: "JIB", count: 2 },
        ],
      },
    },
  };

  it.each<[string, object]>([
    ["statuses and codes", { ...base, buildState: { artifacts: { api: "Complete", web: "x" }, autoTrigger: true } }],
    ["ports", { ...base, forwardedPorts: { 1: { localPort: 1 } } }],
    [
      "the order of builders",
      { ...base, metadata: { build: { builders: [...base.metadata.build.builders].reverse() } } },
    ],
  ])("does not see %s", (_, after) => expect(normalizer.stateDiffers("v1", v1(base), v1(after))).toBe(false));

  it.each<[string, object]>([
    ["auto build", { ...base, buildState: { ...base.buildState, autoTrigger: false } }],
    ["auto deploy", { ...base, deployState: { autoTrigger: true } }],
    ["auto sync", { ...base, fileSyncState: { autoTrigger: true } }],
    ["a new artifact", { ...base, buildState: { ...base.buildState, artifacts: { web: "", api: "", db: "" } } }],
    ["metadata", { ...base, metadata: { build: { builders: [{ type: "DOCKER", count: 2 }] } } }],
    ["a state where there was none", {}],
  ])("sees %s", (_, after) => expect(normalizer.stateDiffers("v1", v1(base), v1(after))).toBe(true));

  it("takes states that can't be read as bytes", () => {
    const [a, b] = [Uint8Array.of(0xff), Uint8Array.of(0xfe)];
    expect([normalizer.stateDiffers("v2", a, a), normalizer.stateDiffers("v2", a, b)]).toEqual([false, true]);
  });
});

describe("controlSteps", () => {
  const execute = "/proto.SkaffoldService/Execute";
  const intent = (...names: ("build" | "sync" | "deploy" | "devloop")[]) => {
    const none = { build: false, sync: false, deploy: false, devloop: false };
    const expected = Object.fromEntries(names.map((name) => [name, true]));
    return UserIntentRequest.encode({ intent: { ...none, ...expected } }).finish();
  };

  it.each([
    [intent("deploy", "build", "sync"), [intent("build"), intent("sync"), intent("deploy")]],
    [intent("deploy", "build"), [intent("build"), intent("deploy")]],
    [intent("build"), [intent("build")]],
    [intent("devloop", "build", "deploy"), [intent("devloop", "build", "deploy")]],
    [intent(), [intent()]],
    [Uint8Array.of(), [Uint8Array.of()]],
    [Uint8Array.of(0xff), [Uint8Array.of(0xff)]],
  ])("Execute %#", (request, steps) => {
    const taken = normalizer.controlSteps(execute, request);
    expect(taken.map((step) => Buffer.from(step.request))).toEqual(steps.map((step) => Buffer.from(step)));
    expect(taken.every((step) => step.method === execute)).toBe(true);
  });

  it.each(["/proto.SkaffoldService/Handle", "/proto.SkaffoldService/AutoSync", "/proto.v2.SkaffoldV2Service/Handle"])(
    "leaves %s",
    (method) => {
      const request = Uint8Array.of(1, 2);
      expect(normalizer.controlSteps(method, request)).toEqual([{ method, request }]);
    },
  );
});

describe("injects", () => {
  it("finds each event of recording 08 that came through Handle, once, in its stream", () => {
    const { calls, messages } = loadRecording(`${recordings.skaffold}/08-handle-custom-events`);
    const handled = calls.filter(({ method, answer }) => method.endsWith("/Handle") && answer?.code === 0);
    expect(handled.length).toBeGreaterThan(20);
    for (const { method, request } of handled) {
      const injection = normalizer.injects(method, request) ?? expect.fail();
      expect(method.includes("V2") ? ["v2", "logs"] : ["v1"]).toContain(injection.channel);
      expect(
        messages[injection.channel as SkaffoldChannel].filter(({ bytes }) => injection.matches(bytes)).length,
        method,
      ).toBe(1);
    }
  });

  const port = { localPort: 1, podName: "p" };
  const v2 = (json: object) => fromGatewayJson(messageType("proto.v2.Event"), json as never);

  it("compares neither v2's time nor the order of a map", () => {
    const debug = (debugPorts: object, at?: string) =>
      v2({ ...(at && { timestamp: at }), debuggingContainerEvent: { status: "Started", debugPorts } });
    const { matches } =
      normalizer.injects("/proto.v2.SkaffoldV2Service/Handle", debug({ a: 1, b: 2 })) ?? expect.fail();
    expect(matches(debug({ b: 2, a: 1 }, "2026-11-20T15:51:04.5Z"))).toBe(true);
    expect(matches(debug({ b: 2, a: 3 }))).toBe(false);
    expect(matches(v2({ portEvent: port }))).toBe(false);
    expect(matches(Uint8Array.of(0xff))).toBe(false);
  });

  it("knows an empty event", () => {
    const { matches } = normalizer.injects("/proto.SkaffoldService/Handle", Uint8Array.of()) ?? expect.fail();
    expect(matches(LogEntry.encode({ timestamp, event: { event_type: undefined }, entry: "" }).finish())).toBe(true);
    expect(matches(LogEntry.encode({ timestamp, event: undefined, entry: "" }).finish())).toBe(false);
  });

  it("is undefined for other calls, and never matches for a request that is none", () => {
    expect(normalizer.injects("/proto.SkaffoldService/Execute", Uint8Array.of())).toBeUndefined();
    const { matches } = normalizer.injects("/proto.SkaffoldService/Handle", Uint8Array.of(0xff)) ?? expect.fail();
    expect(matches(Uint8Array.of(0xff))).toBe(false);
    expect(V1Event.encode({ event_type: undefined }).finish()).toHaveLength(0);
    expect(V2Event.decode(v2({})).event_type).toBeUndefined();
  });
});
