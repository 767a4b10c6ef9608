import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { evolve } from "./evolve.ts";
import { initialState } from "./state.ts";
import {
  build,
  buildV2,
  describedBy,
  firstLoop,
  firstLoopV2,
  fold,
  runnerV2,
  taskV2,
  v1,
  v1After,
  v2,
  v2After,
} from "./testing/builders.ts";

describe("before a runner exists", () => {
  it.each([
    ["nothing was recorded", []],
    ["Skaffold printed something", [v2({ skaffoldLogEvent: { message: "no skaffold.yaml" } })]],
    ["it gave up", [v1({ terminationEvent: { status: "Failed" } })]],
    ["the upstream's own answer was empty", [describedBy({ v1: {}, v2: {} })]],
  ])("no member is set: %s", (_what, events) => {
    expect(v1After(...events)).toMatchObject({ buildState: null, deployState: null, metadata: null, testState: null });
    expect(v2After(...events)).toMatchObject({ buildState: null, renderState: null, metadata: null, execState: null });
  });
});

describe("a stream whose start is missing", () => {
  it("shows the known fields", () => {
    expect(v1After(build("web", "Complete"))).toMatchObject({ buildState: { artifacts: { web: "Complete" } } });
    expect(v2After(buildV2("web", "Succeeded"))).toMatchObject({ buildState: { artifacts: { web: "Succeeded" } } });
  });
});

describe("events that can't matter", () => {
  const state = fold(...firstLoop, ...firstLoopV2, runnerV2("a", "web", "api"));
  const garbage = { ...build("web", "Failed"), original: { ...build("web", "Failed").original } };
  it.each([
    ["text", v2({ skaffoldLogEvent: { message: "hello" } }, { kind: "log.written" })],
    ["text without a kind", v2({ skaffoldLogEvent: { message: "hello" } })],
    ["container output", { ...Event.create({ channel: "logs", kind: "log.written" }) }],
    ["an empty event", v1({})],
    ["another part of a frame", { ...build("web", "Failed"), part: 1 }],
    ["unreadable bytes", { ...build("web", "Failed"), kind: "upstream.unreadable" }],
    ["a session's end", Event.create({ channel: "tapedeck", kind: "session.ended" })],
    ["a loop's end in v2", taskV2("DevLoop", "Succeeded")],
  ])("give the same object back: %s", (_what, event) => {
    expect(evolve(state, event)).toBe(state);
  });

  it("do not throw when the bytes can't be decoded", () => {
    const original = garbage.original && { ...garbage.original, bytes: Buffer.from([0x12, 200]), size: 2n };
    expect(evolve(state, { ...garbage, original } as Event)).toBe(state);
    expect(evolve(initialState, { ...garbage, original } as Event)).toBe(initialState);
  });
});
