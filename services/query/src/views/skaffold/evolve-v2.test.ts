import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { buildV2, firstLoopV2, fold, injected, runnerV2, taskV2, v2, v2After } from "./testing/builders.ts";

describe("v2", () => {
  const render = v2({ renderEvent: { status: "Succeeded" } });
  const built = [...firstLoopV2, runnerV2("a", "web", "api"), buildV2("web", "Succeeded"), render];

  it("begins anew at every loop and every runner", () => {
    const fresh = {
      buildState: { artifacts: { web: "NotStarted", api: "NotStarted" } },
      renderState: { status: "NotStarted" },
    };
    expect(v2After(...built, taskV2("DevLoop"))).toMatchObject(fresh);
    expect(v2After(...built, runnerV2("b", "web", "api"))).toMatchObject(fresh);
  });

  it("recognizes a repeated metaEvent, with and without a run id", () => {
    const withoutId = [runnerV2("", "web"), taskV2("DevLoop"), runnerV2("", "web"), render];
    expect(fold(...built).v2.runner).toBe(1);
    expect(fold(...withoutId).v2.runner).toBe(1);
    expect(fold(...withoutId, runnerV2("", "web")).v2.runner).toBe(2);
  });

  it.each(["constructor", "__proto__", "toString", "hasOwnProperty"])(
    "artifacts and tasks may be called %s",
    (name) => {
      const configured = [...firstLoopV2, runnerV2("a", name, "web")];
      const artifactsAfter = (...events: readonly Event[]) =>
        JSON.stringify((v2After(...configured, ...events) as { buildState: object }).buildState);
      expect(artifactsAfter()).toContain(`"${name}":"NotStarted"`);
      expect(artifactsAfter(buildV2(name, "Succeeded"))).toContain(`"${name}":"Succeeded"`);
      expect(fold(...configured, taskV2("DevLoop"), taskV2("DevLoop"), taskV2(name)).hints.resets).toEqual([]);
    },
  );

  it("takes only the step that builds", () => {
    expect(v2After(...built, buildV2("api", "Failed", "Cache"))).toMatchObject({
      buildState: { artifacts: { web: "Succeeded", api: "NotStarted" } },
    });
  });

  it("never changes a code nor the status check's status", () => {
    const check = v2({
      statusCheckSubtaskEvent: { resource: "r", status: "Failed", statusCode: "STATUSCHECK_UNKNOWN" },
    });
    const failed = v2({ deploySubtaskEvent: { status: "Failed", actionableErr: { errCode: "DEPLOY_UNKNOWN" } } });
    expect(v2After(...built, check, failed)).toMatchObject({
      statusCheckState: { status: "NotStarted", resources: { r: "Failed" }, statusCode: "OK" },
      deployState: { status: "Failed", statusCode: "OK" },
    });
  });

  it.each([
    ["testEvent", "testState"],
    ["renderEvent", "renderState"],
    ["deploySubtaskEvent", "deployState"],
    ["verifyEvent", "verifyState"],
    ["execEvent", "execState"],
    ["fileSyncEvent", "fileSyncState"],
  ])("%s is %s", (event, state) => {
    expect(v2After(...firstLoopV2, v2({ [event]: { status: "Odd" } }))).toMatchObject({ [state]: { status: "Odd" } });
  });

  it("lists a debugged container until it ends", () => {
    const reported = (podName: string, status: string) => v2({ debuggingContainerEvent: { status, podName } });
    const started = [...built, reported("p", "Started"), reported("q", "Started")];
    expect(v2After(...started)).toMatchObject({ debuggingContainers: [{ podName: "p" }, { podName: "q" }] });
    expect(v2After(...started, reported("p", "Terminated"))).toMatchObject({ debuggingContainers: [{ podName: "q" }] });
  });

  it("is not restarted by an injected event", () => {
    const made = [taskV2("DevLoop"), runnerV2("b", "mine")].map(injected);
    expect(v2After(...built, ...made)).toEqual(v2After(...built));
  });
});
