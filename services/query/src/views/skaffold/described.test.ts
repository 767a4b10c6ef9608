import { describe, expect, it } from "vitest";
import { describedBy, firstLoop, firstLoopV2, runner, v1After, v2After } from "./testing/told.ts";

describe("what the upstream says of itself", () => {
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
    expect(v1After(runner, described, runner)).toMatchObject({ buildState: { artifacts: {} } });
  });

  it("is guessed until then: on where there are dev loops", () => {
    expect(v1After(runner)).toMatchObject({ buildState: { autoTrigger: false } });
    expect(v1After(...firstLoop)).toMatchObject({ buildState: { autoTrigger: true } });
    expect(v2After(...firstLoopV2)).toMatchObject({ fileSyncState: { autoTrigger: true } });
  });
});
