import { StatusCode } from "@tapedeck/proto/skaffold/enums/enums";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { build, firstLoop, firstLoopV2, fold, loop, runner, v1After, v2After } from "./testing/builders.ts";

describe("frames that are too large for the log", () => {
  const failure = { code: "BUILD_USER_ERROR", message: "x", suggestions: [] };
  const oversize = (fields: Partial<Event>): Event => {
    const none = Buffer.alloc(0);
    const original = { type: "", bytes: none, size: 8_000_000n, sha256: none, head: none };
    return { ...Event.create({ channel: "v1" }), original, ...fields };
  };

  it("fold from their normalized fields", () => {
    const large = oversize({ kind: "build.failed", subject: "web", error: failure });
    const failed = oversize({ kind: "loop.failed", error: failure });
    expect(v1After(runner, loop("In Progress"), build("web", "In Progress"), large, failed)).toMatchObject({
      buildState: { artifacts: { web: "Failed" }, statusCode: "BUILD_USER_ERROR" },
    });
    const deployed = oversize({ kind: "deploy.failed", error: { ...failure, code: `${StatusCode.DEPLOY_UNKNOWN}` } });
    expect(v1After(runner, loop("In Progress"), deployed)).toMatchObject({
      deployState: { status: "Failed", statusCode: "DEPLOY_UNKNOWN" },
    });
  });

  it.each(["build", "test", "deploy", "init"])("end their loop where its cause comes first: %s", (phase) => {
    const frame = loop("Failed", "BUILD_USER_ERROR").original?.bytes ?? Buffer.alloc(0);
    // A timestamp precedes the event, and what follows is cut off.
    const head = Buffer.concat([Buffer.from([0x0a, 2, 0x08, 1]), frame.subarray(0, 6)]);
    const detail: Event["detail"] =
      phase === "build"
        ? { $case: "build", value: { artifact: "", host_platform: "", target_platforms: "", cache_hit: false } }
        : { $case: "phase", value: { name: phase, task_id: "", status: "Failed" } };
    const cause = oversize({ kind: `${phase}.failed`, error: failure, detail });
    const large = { ...cause, original: cause.original && { ...cause.original, head } };
    const end = Event.create({ channel: "v1", part: 1, kind: "loop.failed", error: failure });
    const before = [...firstLoop, loop("In Progress"), build("web", "Failed", "BUILD_USER_ERROR")];
    expect(fold(...before, large, end)).toEqual(fold(...before, loop("Failed", "BUILD_USER_ERROR")));
  });

  it("have no status where their kind is one that every object has", () => {
    const unknown = oversize({ kind: "deploy.constructor" });
    expect(v1After(runner, loop("In Progress"), unknown)).toMatchObject({ deployState: { status: "" } });
    const mirrored = oversize({ channel: "v2", kind: "render.constructor" });
    expect(v2After(...firstLoopV2, mirrored)).toMatchObject({ renderState: { status: "" } });
  });

  it("fold from the mirror where v1 reports the same", () => {
    const value = { what: "deploySubtaskEvent", status: "Failed", task_id: "Deploy-1", subtask_id: "0" };
    const mirrored = oversize({ channel: "v2", kind: "mirror.received", detail: { $case: "mirror", value } });
    const rendered = oversize({ channel: "v2", kind: "render.failed" });
    expect(v2After(...firstLoopV2, mirrored, rendered)).toMatchObject({
      deployState: { status: "Failed" },
      renderState: { status: "Failed" },
    });
  });
});
