import { describe, expect, it } from "vitest";
import {
  build,
  buildV2,
  call,
  firstLoop,
  firstLoopV2,
  fold,
  loop,
  runner,
  v1After,
  v2After,
} from "./testing/builders.ts";

describe("control calls", () => {
  const build_ = call("Execute", { intent: { build: true } });
  const woken = [loop("In Progress"), build("web", "In Progress")];

  it.each([
    [
      "build",
      { build: true },
      { buildState: { artifacts: { web: "Not Started" } }, deployState: { status: "Not Started" } },
    ],
    [
      "deploy",
      { deploy: true },
      { buildState: { artifacts: { web: "Complete" } }, deployState: { status: "Not Started" } },
    ],
    ["sync", { sync: true }, { buildState: { artifacts: { web: "Complete" } }, deployState: { status: "Complete" } }],
    [
      "devloop",
      { devloop: true },
      { buildState: { artifacts: { web: "Not Started" } }, testState: { status: "Not Started" } },
    ],
    ["nothing", {}, { buildState: { artifacts: { web: "Complete" } }, deployState: { status: "Complete" } }],
  ])("Execute %s resets", (_what, intent, expected) => {
    const execute = call("Execute", { intent });
    expect(v1After(...firstLoop, execute.requested, execute.accepted)).toMatchObject(expected);
  });

  it("reset what was written before they were sent, not what the loop that they started has written since", () => {
    expect(v1After(...firstLoop, build_.requested, ...woken, build_.accepted)).toMatchObject({
      buildState: { artifacts: { web: "In Progress", api: "Not Started" } },
      deployState: { status: "Not Started" },
    });
    const first = [runner, build_.requested, ...woken, build_.accepted];
    expect(v1After(...first)).toMatchObject({ buildState: { artifacts: { web: "In Progress" } } });
  });

  it("do nothing before the answer, and nothing if refused", () => {
    expect(v1After(...firstLoop, build_.requested)).toEqual(v1After(...firstLoop));
    expect(v1After(...firstLoop, build_.requested, build_.rejected)).toEqual(v1After(...firstLoop));
    expect(fold(...firstLoop, build_.requested, build_.rejected).calls).toEqual([]);
    expect(fold(...firstLoop, build_.requested, build_.accepted).calls).toEqual([]);
  });

  it("count from their answer if their request was not recorded", () => {
    expect(v1After(...firstLoop, build_.accepted)).toMatchObject({ deployState: { status: "Not Started" } });
  });

  it.each([
    ["AutoBuild", "buildState", "buildState"],
    ["AutoDeploy", "deployState", "deployState"],
    ["AutoSync", "fileSyncState", undefined],
  ])("%s sets its flag and resets when it turns on", (method, state, resets) => {
    for (const enabled of [true, false]) {
      const toggle = call(method, { state: { enabled } });
      const after = v1After(...firstLoop, toggle.requested, toggle.accepted);
      expect(after).toMatchObject({ [state]: { autoTrigger: enabled } });
      const isReset = enabled && resets !== undefined;
      expect(after).toMatchObject({ deployState: { status: isReset ? "Not Started" : "Complete" } });
    }
  });

  it("through v2 act on v1, and on v2 not at all", () => {
    const toggle = call("AutoBuild", { state: { enabled: false } }, "v2");
    const before = [...firstLoop, ...firstLoopV2, buildV2("web", "Succeeded")];
    expect(v1After(...before, toggle.requested, toggle.accepted)).toMatchObject({ buildState: { autoTrigger: false } });
    expect(v2After(...before, toggle.requested, toggle.accepted)).toEqual(v2After(...before));
  });
});
