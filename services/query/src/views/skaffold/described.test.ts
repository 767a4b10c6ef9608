import { describe, expect, it } from "vitest";
import {
  call,
  describedBy,
  empty,
  firstLoop,
  firstLoopV2,
  loop,
  runner,
  v1After,
  v2After,
} from "./testing/builders.ts";

describe("the upstream's answer about itself", () => {
  const described = describedBy({
    v1: {
      buildState: { artifacts: { web: "Failed" }, autoTrigger: true, statusCode: "BUILD_UNKNOWN" },
      deployState: { status: "Failed", autoTrigger: false },
      fileSyncState: { status: "Failed", autoTrigger: true },
    },
    v2: { buildState: { autoTrigger: false }, testState: { status: "Failed" }, renderState: { status: "Failed" } },
  });

  it.each([
    ["before", [described, runner]],
    ["after", [runner, described]],
  ])("gives flags, names and which members there are, no statuses, %s the runner", (_when, events) => {
    expect(v1After(...events)).toMatchObject({
      buildState: { artifacts: { web: "Not Started" }, autoTrigger: true, statusCode: "OK" },
      deployState: { status: "Not Started", autoTrigger: false },
      fileSyncState: { status: "Not Started", autoTrigger: true },
      testState: null,
    });
  });

  it("gives v2 the same", () => {
    expect(v2After(described, ...firstLoopV2)).toMatchObject({
      buildState: { autoTrigger: false },
      testState: { status: "NotStarted" },
      renderState: { status: "NotStarted" },
      verifyState: null,
      execState: null,
    });
  });

  it("has no names for a runner that came later", () => {
    expect(v1After(runner, described, runner)).toMatchObject({ buildState: { artifacts: empty } });
  });

  it("sets the flags of later runners, the first time and unless a call has set them", () => {
    const off = call("AutoBuild", { state: { enabled: false } });
    const again = describedBy({ v1: { buildState: { autoTrigger: false }, fileSyncState: { autoTrigger: false } } });
    const flags = (build: boolean, sync: boolean) => ({
      buildState: { autoTrigger: build },
      fileSyncState: { autoTrigger: sync },
    });
    expect(v1After(runner, described, again)).toMatchObject(flags(false, false));
    expect(v1After(runner, described, again, runner)).toMatchObject(flags(true, true));
    const called = [runner, off.requested, off.accepted, again];
    expect(v1After(...called, runner, loop("In Progress"))).toMatchObject(flags(true, false));
  });

  it("is ignored while there is no runner", () => {
    expect(v1After(describedBy({ v1: {}, v2: {} }), ...firstLoop)).toEqual(v1After(...firstLoop));
    expect(v2After(describedBy({ v1: {}, v2: {} }), ...firstLoopV2)).toEqual(v2After(...firstLoopV2));
  });

  it("is assumed until then: on where there are dev loops", () => {
    expect(v1After(runner)).toMatchObject({ buildState: { autoTrigger: false } });
    expect(v1After(...firstLoop)).toMatchObject({ buildState: { autoTrigger: true } });
    expect(v2After(...firstLoopV2)).toMatchObject({ fileSyncState: { autoTrigger: true } });
  });
});
