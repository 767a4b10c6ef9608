import { describe, expect, it } from "vitest";
import {
  build,
  deploy,
  empty,
  firstLoop,
  firstLoopV2,
  fold,
  injected,
  loop,
  port,
  runner,
  runnerV2,
  sync,
  taskV2,
  test,
  v1,
  v1After,
} from "./testing/builders.ts";

const nothingStarted = { buildState: { artifacts: { web: "Not Started", api: "Not Started" }, statusCode: "OK" } };

describe("v1, resets between loops", () => {
  const secondLoop = [...firstLoop, loop("In Progress")];

  it("keeps everything until a phase begins", () => {
    expect(v1After(...secondLoop)).toEqual(v1After(...firstLoop));
  });

  it("does not reset in the first loop", () => {
    const made = injected(deploy("Information"));
    expect(v1After(runner, made, loop("In Progress"), build("web", "Complete"))).toMatchObject({
      deployState: { status: "Information" },
    });
  });

  it("forgets everything at the first build", () => {
    expect(v1After(...secondLoop, build("web", "In Progress"))).toMatchObject({
      buildState: { artifacts: { web: "In Progress", api: "Not Started" } },
      testState: { status: "Not Started" },
      deployState: { status: "Not Started", statusCode: "OK" },
      forwardedPorts: empty,
    });
  });

  it("also if every build was cached and only v2 reports the phase", () => {
    const v2Told = [...firstLoopV2, taskV2("Build"), taskV2("DevLoop"), taskV2("Build")];
    expect(v1After(...secondLoop, ...v2Told)).toMatchObject(nothingStarted);
    expect(v1After(...v2Told, ...secondLoop)).toMatchObject(nothingStarted);
  });

  it("delays what v2 reports about a loop that v1 has not reached", () => {
    const ahead = [...firstLoopV2, taskV2("DevLoop"), taskV2("Build")];
    expect(v1After(...ahead, ...firstLoop)).toMatchObject({ buildState: { artifacts: { web: "Complete" } } });
    expect(v1After(...ahead, ...firstLoop, loop("In Progress"))).toMatchObject(nothingStarted);
  });

  it("keeps what the loop itself wrote if v2's event comes late", () => {
    const thirdLoop = [
      ...secondLoop,
      build("web", "Complete"),
      loop("Succeeded"),
      loop("In Progress"),
      deploy("Complete"),
    ];
    const late = [...firstLoopV2, taskV2("DevLoop"), taskV2("Build"), taskV2("DevLoop"), taskV2("Render")];
    expect(v1After(...thirdLoop, ...late)).toMatchObject({
      buildState: { artifacts: { web: "Complete", api: "Not Started" } },
      deployState: { status: "Complete", statusCode: "DEPLOY_SUCCESS" },
    });
  });

  it("keeps results when an artifact is built twice in a loop", () => {
    const built = [build("web", "Complete"), deploy("Complete"), build("web", "In Progress"), build("web", "Complete")];
    expect(v1After(...secondLoop, ...built)).toMatchObject({ deployState: { status: "Complete" } });
  });

  it("counts v2's loops from the start of each runner", () => {
    const v2Told = [...firstLoopV2, taskV2("DevLoop"), runnerV2("b"), taskV2("DevLoop"), taskV2("DevLoop")];
    const rebuilt = [...firstLoop, ...firstLoop, loop("In Progress"), ...v2Told, taskV2("Build")];
    expect(v1After(...rebuilt)).toMatchObject({ deployState: { status: "Not Started" } });
  });

  it("drops what v2 reported about earlier runners", () => {
    const v2Told = [...firstLoopV2, taskV2("DevLoop"), taskV2("Build"), runnerV2("b", "web")];
    expect(fold(...v2Told, ...firstLoop, ...firstLoop).hints).toEqual({
      resets: [],
      artifacts: [{ runner: 2, names: ["web"] }],
    });
    expect(fold(...v2Told, runner, runner).hints).toMatchObject({ resets: [], artifacts: [{ runner: 2 }] });
    expect(fold(...firstLoop, ...firstLoop, ...v2Told).hints).toEqual(
      fold(...v2Told, ...firstLoop, ...firstLoop).hints,
    );
  });

  it("ignores what v2 reports about another runner", () => {
    const ofTheNext = [...firstLoopV2, runnerV2("b"), taskV2("DevLoop"), taskV2("DevLoop"), taskV2("Build")];
    expect(v1After(...secondLoop, ...ofTheNext)).toMatchObject({ deployState: { status: "Complete" } });
    expect(v1After(...ofTheNext, ...secondLoop)).toMatchObject({ deployState: { status: "Complete" } });
    expect(
      v1After(
        ...secondLoop,
        runner,
        loop("In Progress"),
        deploy("Complete"),
        ...firstLoopV2,
        taskV2("DevLoop"),
        taskV2("Build"),
      ),
    ).toMatchObject({
      deployState: { status: "Complete" },
    });
  });

  it("clears a sync of the same loop when that loop builds, also if v2 reports the build first", () => {
    const v2Told = [...firstLoopV2, taskV2("DevLoop"), taskV2("Build")];
    const cleared = { fileSyncState: { status: "Not Started" } };
    expect(v1After(...secondLoop, sync("Succeeded"))).toMatchObject({ fileSyncState: { status: "Succeeded" } });
    expect(v1After(...secondLoop, sync("Succeeded"), build("web", "In Progress"))).toMatchObject(cleared);
    expect(v1After(...secondLoop, sync("Succeeded"), ...v2Told)).toMatchObject(cleared);
    expect(v1After(...v2Told, ...secondLoop, sync("Succeeded"))).toMatchObject(cleared);
    expect(v1After(...secondLoop, ...v2Told, sync("In Progress"), sync("Succeeded"))).toMatchObject(cleared);
  });

  it("also if the sync failed, was retried, and the loop went on to build", () => {
    const retried = [sync("Failed"), loop("Failed"), sync("In Progress"), sync("Failed"), loop("Failed")];
    expect(v1After(...secondLoop, ...retried)).toMatchObject({ fileSyncState: { status: "Failed" } });
    expect(v1After(...secondLoop, ...retried, build("web", "In Progress"))).toMatchObject({
      fileSyncState: { status: "Not Started" },
    });
  });

  it("also if a sync was injected between the retries", () => {
    const v2Told = [...firstLoopV2, taskV2("DevLoop"), taskV2("Build")];
    const retried = [sync("Failed"), loop("Failed"), injected(sync("Odd")), sync("Failed")];
    const cleared = { fileSyncState: { status: "Not Started" } };
    expect(v1After(...secondLoop, ...retried, ...v2Told)).toMatchObject(cleared);
    expect(v1After(...v2Told, ...secondLoop, ...retried)).toMatchObject(cleared);
  });

  it("keeps a sync that was injected after the loop, whenever v2 reports the loop's build", () => {
    const v2Told = [...firstLoopV2, taskV2("DevLoop"), taskV2("Build")];
    const made = injected(sync("Odd"));
    for (const end of ["Succeeded", "Failed"]) {
      const over = [...secondLoop, loop(end)];
      const left = { fileSyncState: { status: "Odd" } };
      expect(v1After(...over, made, ...v2Told)).toMatchObject(left);
      expect(v1After(...over, ...v2Told, made)).toMatchObject(left);
    }
  });

  it("keeps a sync that was injected after the build", () => {
    const made = injected(sync("Failed"));
    expect(v1After(...secondLoop, build("web", "Complete"), made, build("api", "Complete"))).toMatchObject({
      fileSyncState: { status: "Failed" },
    });
  });

  it("resets the test's status and not its code where a loop tests without a build", () => {
    const failed = [runner, loop("In Progress"), test("Failed", "TEST_UNKNOWN"), loop("In Progress")];
    expect(v1After(...failed, test("In Progress"))).toMatchObject({
      testState: { status: "In Progress", statusCode: "TEST_UNKNOWN" },
    });
    expect(v1After(...failed, ...firstLoopV2, taskV2("DevLoop"), taskV2("Test"))).toMatchObject({
      testState: { status: "Not Started", statusCode: "TEST_UNKNOWN" },
    });
    expect(v1After(...failed, build("web", "Complete"))).toMatchObject({ testState: { statusCode: "OK" } });
  });

  it("resets the deploy and what belongs to it, and no more, where a loop only renders", () => {
    const check = v1({ resourceStatusCheckEvent: { resource: "deployment/web", status: "Succeeded" } });
    const checked = v1({ statusCheckEvent: { status: "Succeeded" } });
    const debugged = v1({ debuggingContainerEvent: { status: "Started", podName: "p" } });
    const reported = [...firstLoopV2, taskV2("DevLoop"), taskV2("Render")];
    expect(
      v1After(...firstLoop, check, checked, debugged, loop("In Progress"), sync("Succeeded"), ...reported),
    ).toMatchObject({
      buildState: { artifacts: { web: "Complete", api: "Complete" } },
      testState: { status: "Complete" },
      fileSyncState: { status: "Succeeded" },
      deployState: { status: "Not Started", statusCode: "OK" },
      statusCheckState: { status: "Not Started", resources: empty, statusCode: "OK" },
      debuggingContainers: empty,
      forwardedPorts: empty,
    });
  });

  it("concludes a failed render from v1 alone", () => {
    const reset = { deployState: { status: "Not Started" }, buildState: { artifacts: { web: "Complete" } } };
    expect(v1After(...secondLoop, loop("Failed", "UNKNOWN_ERROR"))).toMatchObject(reset);
    expect(v1After(...secondLoop, sync("Failed"), loop("Failed", "UNKNOWN_ERROR"))).toMatchObject({
      deployState: { status: "Complete" },
    });
  });
});

describe("v1, loops without any record", () => {
  const old = v1({ metaEvent: { entry: "Starting Skaffold: &{Version:v0.40.0}" } });
  const once = [
    old,
    build("web", "In Progress"),
    build("web", "Complete"),
    build("api", "In Progress"),
    build("api", "Complete"),
  ];

  it("start where a build follows a deploy, or an artifact is built again", () => {
    const notYet = { buildState: { artifacts: { web: "In Progress", api: "Not Started" } } };
    expect(v1After(...once)).toMatchObject({ buildState: { artifacts: { web: "Complete", api: "Complete" } } });
    expect(v1After(...once, deploy("Complete"), build("web", "In Progress"))).toMatchObject({
      ...notYet,
      deployState: { status: "Not Started" },
    });
    expect(v1After(...once, build("web", "In Progress"))).toMatchObject(notYet);
  });

  it("are numbered apart from those that v2 reports", () => {
    const again = [...once, deploy("In Progress"), deploy("Complete"), deploy("In Progress")];
    const reported = [...firstLoopV2, taskV2("DevLoop"), taskV2("Build")];
    expect(v1After(...reported, ...again)).toEqual(v1After(...firstLoopV2, ...again));
    expect(v1After(...again, ...reported)).toEqual(v1After(...firstLoopV2, ...again));
  });

  it("start where a deploy follows a deploy", () => {
    const ports = [deploy("In Progress"), deploy("Complete"), port(8080)];
    expect(v1After(...once, ...ports, deploy("In Progress"))).toMatchObject({
      buildState: { artifacts: { web: "Complete" } },
      forwardedPorts: empty,
    });
  });
});
