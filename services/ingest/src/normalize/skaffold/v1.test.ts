import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { describe, expect, it } from "vitest";
import type { Fact } from "../fact.ts";
import { frameReader } from "./frame-reader.ts";
import { v1, v1Alone } from "./v1.ts";

const entryType = messageType("proto.LogEntry");
const frame = (event: object | undefined) =>
  fromGatewayJson(entryType, { timestamp: "2026-11-20T15:51:04.000000007Z", ...(event && { event }) } as never);

const start = "Starting Skaffold: &{Version:v2.14.2 ConfigVersion:skaffold/v4beta12 GitVersion:}";
const configured = { metaEvent: { entry: start, metadata: { build: { numberOfArtifacts: 1 } } } };
const loop = (iteration: number, status: string, err?: object) => ({
  devLoopEvent: { iteration, status, ...(err && { err }) },
});

/** The fact of the last of these events. */
function last(...events: (object | undefined)[]): Fact {
  const { read } = frameReader(v1);
  return events.map((event) => read(frame(event)).at(-1)).at(-1) ?? expect.fail();
}

function reported(fact: Fact): string {
  const { operation } = fact;
  const place = operation && `${operation.kind}:${operation.subject} ${operation.runner}/${operation.loop}`;
  return [fact.kind, fact.subject ?? "", place, fact.summary].join(" | ");
}

const suggestion = { suggestionCode: "OPEN_ISSUE", action: "Please open an issue" };
const actionableErr = { errCode: "BUILD_USER_ERROR", message: "exit status 1\nat line 3", suggestions: [suggestion] };

const cases: { title: string; event: object | undefined; gives: string }[] = [
  {
    title: "meta",
    event: configured,
    gives: "session.configured |  | : 2/0 | Skaffold v2.14.2 read its configuration: 1 artifact",
  },
  {
    title: "meta of 0.40",
    event: { metaEvent: { entry: "Starting Skaffold: &{Version:v0.40.0 }" } },
    gives: "session.configured |  | : 2/0 | Skaffold v0.40.0 read its configuration",
  },
  {
    title: "meta by Handle",
    event: { metaEvent: { entry: "hello" } },
    gives: "mirror.received |  | loop: 1/1 | metaEvent",
  },
  { title: "next loop", event: loop(1, "In Progress"), gives: "loop.started |  | loop: 1/2 | loop 2 started" },
  { title: "loop succeeded", event: loop(0, "Succeeded"), gives: "loop.succeeded |  | loop: 1/1 | loop 1 succeeded" },
  {
    title: "loop failed",
    event: loop(0, "Failed", actionableErr),
    gives: "loop.failed |  | loop: 1/1 | loop 1 failed: exit status 1",
  },
  {
    title: "end of another loop",
    event: loop(99, "Succeeded"),
    gives: "mirror.received |  | loop: 1/1 | devLoopEvent Succeeded",
  },
  { title: "unknown loop status", event: loop(0, "Odd"), gives: "mirror.received |  | loop: 1/1 | devLoopEvent Odd" },
  {
    title: "build started",
    event: { buildEvent: { artifact: "web", status: "In Progress" } },
    gives: "build.started | web | build:web 1/1 | build of web started",
  },
  {
    title: "build done",
    event: { buildEvent: { artifact: "web", status: "Complete" } },
    gives: "build.succeeded | web | build:web 1/1 | web built",
  },
  {
    title: "build failed",
    event: { buildEvent: { artifact: "web", status: "Failed", actionableErr } },
    gives: "build.failed | web | build:web 1/1 | build of web failed: exit status 1",
  },
  {
    title: "build failed without a word",
    event: { buildEvent: { artifact: "web", status: "Failed" } },
    gives: "build.failed | web | build:web 1/1 | build of web failed",
  },
  {
    title: "build canceled",
    event: { buildEvent: { artifact: "web", status: "Canceled" } },
    gives: "build.canceled | web | build:web 1/1 | build of web canceled",
  },
  {
    title: "unknown build status",
    event: { buildEvent: { artifact: "web", status: "Whatever" } },
    gives: "mirror.received |  | loop: 1/1 | buildEvent Whatever",
  },
  {
    title: "test started",
    event: { TestEvent: { status: "In Progress" } },
    gives: "test.started |  | test: 1/1 | tests started",
  },
  {
    title: "test done",
    event: { TestEvent: { status: "Complete" } },
    gives: "test.succeeded |  | test: 1/1 | tests passed",
  },
  {
    title: "test failed",
    event: { TestEvent: { status: "Failed", actionableErr } },
    gives: "test.failed |  | test: 1/1 | tests failed: exit status 1",
  },
  {
    title: "deploy started",
    event: { deployEvent: { status: "In Progress" } },
    gives: "deploy.started |  | deploy: 1/1 | deploy started",
  },
  {
    title: "deploy done",
    event: { deployEvent: { status: "Complete" } },
    gives: "deploy.succeeded |  | deploy: 1/1 | deployed",
  },
  {
    title: "deploy failed",
    event: { deployEvent: { status: "Failed", err: "boom" } },
    gives: "deploy.failed |  | deploy: 1/1 | deploy failed: boom",
  },
  {
    title: "deploy says something",
    event: { deployEvent: { status: "Information" } },
    gives: "mirror.received |  | loop: 1/1 | deployEvent Information",
  },
  {
    title: "check started",
    event: { statusCheckEvent: { status: "Started" } },
    gives: "check.started |  | check: 1/1 | status check started",
  },
  {
    title: "check goes on",
    event: { statusCheckEvent: { status: "In Progress" } },
    gives: "mirror.received |  | loop: 1/1 | statusCheckEvent In Progress",
  },
  {
    title: "check done",
    event: { statusCheckEvent: { status: "Succeeded" } },
    gives: "check.succeeded |  | check: 1/1 | status check succeeded",
  },
  {
    title: "check failed",
    event: { statusCheckEvent: { status: "Failed", err: "1/3 failed" } },
    gives: "check.failed |  | check: 1/1 | status check failed: 1/3 failed",
  },
  {
    title: "resource pending",
    event: { resourceStatusCheckEvent: { resource: "pod/a", status: "In Progress", message: "waiting\n" } },
    gives: "resource.pending | pod/a | check: 1/1 | pod/a is pending: waiting",
  },
  {
    title: "resource ready",
    event: { resourceStatusCheckEvent: { resource: "pod/a", status: "Succeeded" } },
    gives: "resource.ready | pod/a | check: 1/1 | pod/a is ready",
  },
  {
    title: "resource failed",
    event: { resourceStatusCheckEvent: { resource: "pod/a", status: "Failed", err: "\n\u001b[31mgone\u001b[0m\n" } },
    gives: "resource.failed | pod/a | check: 1/1 | pod/a failed: gone",
  },
  {
    title: "sync started",
    event: { fileSyncEvent: { image: "r.io:5000/p/web:1@sha256:ab", fileCount: 2, status: "In Progress" } },
    gives: "sync.started | r.io:5000/p/web | sync:r.io:5000/p/web 1/1 | sync of 2 files to r.io:5000/p/web started",
  },
  {
    title: "sync done",
    event: { fileSyncEvent: { image: "web:1", fileCount: 1, status: "Succeeded" } },
    gives: "sync.succeeded | web | sync:web 1/1 | 1 file synced to web",
  },
  {
    title: "sync failed",
    event: { fileSyncEvent: { image: "web:1", fileCount: 1, status: "Failed", err: "x" } },
    gives: "sync.failed | web | sync:web 1/1 | sync of 1 file to web failed: x",
  },
  {
    title: "port",
    event: { portEvent: { localPort: 9080, resourceType: "service", resourceName: "web", address: "127.0.0.1" } },
    gives: "port.forwarded | service/web | loop: 1/1 | service/web forwarded to 127.0.0.1:9080",
  },
  {
    title: "port of a pod",
    event: { portEvent: { localPort: 9080, podName: "web-1" } },
    gives: "port.forwarded | web-1 | loop: 1/1 | web-1 forwarded to 127.0.0.1:9080",
  },
  {
    title: "debugger",
    event: {
      debuggingContainerEvent: { status: "Started", podName: "p", containerName: "c", debugPorts: { jdwp: 5005 } },
    },
    gives: "debugger.attached | c | loop: 1/1 | debugger can attach to p/c",
  },
  {
    title: "debugger gone",
    event: { debuggingContainerEvent: { status: "Terminated", podName: "p", containerName: "c" } },
    gives: "debugger.detached | c | loop: 1/1 | debugger lost p/c",
  },
  {
    title: "termination",
    event: { terminationEvent: { status: "Failed", err: { message: "unknown trigger" } } },
    gives: "session.terminated |  | loop: 1/1 | Skaffold ends: unknown trigger",
  },
  { title: "empty event", event: {}, gives: "mirror.received |  | loop: 1/1 | empty event" },
  { title: "no event", event: undefined, gives: "mirror.received |  | loop: 1/1 | empty event" },
];

describe("v1, in the first loop of the first runner", () => {
  it.each(cases)("$title", ({ event, gives }) => {
    expect(reported(last(configured, loop(0, "In Progress"), event))).toBe(gives);
  });
});

describe("a failure that no step reports", () => {
  const facts = (reader: typeof v1, ...events: object[]) => {
    const { read } = frameReader(reader);
    return events.map((event) => read(frame(event)).map(reported)).at(-1);
  };
  const begun = [configured, loop(0, "In Progress")];
  const failed = (errCode: string) => loop(0, "Failed", { errCode, message: "no" });

  it("is that of the initialization, if no runner can be made", () => {
    const end = { terminationEvent: { status: "Failed", err: { errCode: "INIT_CACHE_ERROR", message: "no" } } };
    expect(facts(v1, configured, end)).toEqual([
      "init.failed |  | init: 1/0 | init failed: no",
      "session.terminated |  | : 1/0 | Skaffold ends: no",
    ]);
    expect(facts(v1, configured, { terminationEvent: { status: "Complete" } })).toHaveLength(1);
  });

  it("is that of the phase that the code of the loop's error names; v2 reports most of them itself", () => {
    const end = "loop.failed |  | loop: 1/1 | loop 1 failed: no";
    const start = "init.failed |  | init: 1/1 | init failed: no";
    expect(facts(v1, ...begun, failed("DEVINIT_REGISTER_BUILD_DEPS"))).toEqual([start, end]);
    expect(facts(v1, ...begun, failed("BUILD_UNKNOWN"))).toEqual([end]);
    const ofCodes = [
      ["BUILD_UNKNOWN", "build.failed |  | build: 1/1 | build failed: no"],
      ["TEST_USER_CONFIG_ERR", "test.failed |  | test: 1/1 | tests failed: no"],
      ["RENDER_SET_LABEL_ERR", "render.failed |  | render: 1/1 | render failed: no"],
      ["DEPLOY_UNKNOWN", "deploy.failed |  | deploy: 1/1 | deploy failed: no"],
      ["STATUSCHECK_USER_CANCELLED", "check.failed |  | check: 1/1 | status check failed: no"],
      ["SYNC_INIT_ERROR", start],
    ] as const;
    for (const [code, cause] of ofCodes) expect(facts(v1Alone, ...begun, failed(code))).toEqual([cause, end]);
    for (const code of ["UNKNOWN_ERROR", "SYNC_UNKNOWN", "OK"])
      expect(facts(v1Alone, ...begun, failed(code))).toEqual([end]);
  });

  it("is not beside one of a step, and only once", () => {
    const build = { buildEvent: { artifact: "web", status: "Failed", err: "no" } };
    expect(facts(v1Alone, ...begun, build, failed("BUILD_UNKNOWN"))).toHaveLength(1);
    expect(facts(v1Alone, ...begun, failed("BUILD_UNKNOWN"), failed("BUILD_UNKNOWN"))).toHaveLength(1);
  });
});

describe("builds beside one that fails", () => {
  const build = (artifact: string, status: string, err = "") => ({ buildEvent: { artifact, status, err } });
  const at = (ms: number, event: object) =>
    fromGatewayJson(entryType, { timestamp: new Date(1_795_189_864_000 + ms).toISOString(), event } as never);
  const kinds = (...events: readonly (readonly [ms: number, event: object])[]) => {
    const { read } = frameReader(v1);
    return events.map(([ms, event]) => {
      const { kind, summary } = read(at(ms, event))[0];
      return kind === "build.canceled" ? summary : kind;
    });
  };
  const killed = "building custom artifact: signal: killed";

  it.each([[[]], [[[0, loop(0, "In Progress")] as const]]])("are canceled when Skaffold ends them (%#)", (before) => {
    const facts = kinds(
      [0, configured],
      ...before,
      [1, build("web", "In Progress")],
      [1, build("api", "In Progress")],
      [1, build("worker", "In Progress")],
      [900, build("api", "Failed", "exit status 3")],
      // It waited for its turn.
      [901, build("docs", "In Progress")],
      [902, build("docs", "Failed", "error during connect: build [api] failed: exit status 3")],
      // Skaffold gives a build two seconds to end.
      [2_950, build("worker", "Failed", killed)],
      [2_951, build("web", "Failed", "exit status 1")],
    );
    expect(facts.slice(-5)).toEqual([
      "build.failed",
      "build.started",
      "build of docs canceled because that of api failed",
      "build of worker canceled because that of api failed",
      // Nothing shows that Skaffold ended it.
      "build.failed",
    ]);
  });

  it("failed by themselves where none failed before: a build that ran out of memory is killed, too", () => {
    expect(
      kinds(
        [0, configured],
        [0, loop(0, "In Progress")],
        [1, build("web", "In Progress")],
        [1, build("api", "In Progress")],
        [500, build("web", "Failed", killed)],
        [501, build("api", "Failed", killed)],
      ).slice(-2),
    ).toEqual(["build.failed", "build of api canceled because that of web failed"]);
    expect(
      kinds(
        [0, configured],
        [1, build("api", "In Progress")],
        [500, build("api", "Failed", "exit status 3")],
        // The next round, without loops.
        [5_000, build("web", "In Progress")],
        [9_000, build("web", "Failed", killed)],
      ).at(-1),
    ).toBe("build.failed");
    expect(
      kinds(
        [0, configured],
        [0, loop(0, "In Progress")],
        [1, build("api", "In Progress")],
        [500, build("api", "Failed", "exit status 3")],
        [501, loop(0, "Failed")],
        [600, loop(1, "In Progress")],
        [601, build("web", "In Progress")],
        [900, build("web", "Failed", killed)],
      ).at(-1),
    ).toBe("build.failed");
  });
});

describe("v1", () => {
  it("keeps time to the nanosecond", () => {
    expect(last(configured).occurredAt).toEqual({ seconds: 1_795_189_864n, nanos: 7 });
  });

  it("takes Skaffold's version from its first words", () => {
    expect(last(configured).detail).toMatchObject({ value: { upstream_version: "v2.14.2" } });
  });

  it("counts loops anew with each runner, whatever their iteration", () => {
    const first = [configured, loop(0, "In Progress"), loop(0, "Succeeded"), loop(0, "In Progress")];
    expect(reported(last(...first))).toBe("loop.started |  | loop: 1/2 | loop 2 started");
    expect(reported(last(...first, configured, loop(0, "In Progress")))).toBe(
      "loop.started |  | loop: 2/1 | loop 1 started",
    );
  });

  it("has the last word on a loop whose sync was tried again", () => {
    const tries = [configured, loop(0, "In Progress"), loop(0, "Failed"), loop(0, "Failed")];
    expect(last(...tries).kind).toBe("loop.failed");
    expect(reported(last(...tries, loop(0, "Succeeded")))).toBe("loop.succeeded |  | loop: 1/1 | loop 1 succeeded");
  });

  it("says that a loop failed whose last sync of an image failed, whatever Skaffold says at its end", () => {
    const sync = (image: string, status: string, err = "") => ({ fileSyncEvent: { image, fileCount: 1, status, err } });
    const begun = [configured, loop(0, "In Progress")];
    const web = [sync("web:1", "In Progress"), sync("web:1", "Failed", "pod is gone"), loop(0, "Failed")];
    expect(last(...begun, ...web, ...web, loop(0, "Succeeded"))).toMatchObject({
      kind: "loop.failed",
      outcome: Outcome.OUTCOME_FAILED,
      summary: "loop 1 failed: sync of web in 2 tries: pod is gone",
      error: { message: "pod is gone" },
      detail: { value: { iteration: 0 } },
    });
    const good = [sync("web:1", "In Progress"), sync("web:1", "Succeeded")];
    expect(last(...begun, ...web, ...good, loop(0, "Succeeded")).kind).toBe("loop.succeeded");
    const other = [sync("api:1", "In Progress"), sync("api:1", "Succeeded")];
    expect(last(...begun, ...web, ...other, loop(0, "Succeeded")).kind).toBe("loop.failed");
    // A loop says nothing of the next one.
    const next = [loop(0, "Succeeded"), loop(1, "In Progress"), loop(1, "Succeeded")];
    expect(last(...begun, ...web, ...next).kind).toBe("loop.succeeded");
  });

  it("does not count a step that a client put into the stream", () => {
    const { read } = frameReader(v1);
    const events = [configured, loop(0, "In Progress")];
    for (const event of events) read(frame(event));
    read(frame({ fileSyncEvent: { image: "web", fileCount: 1, status: "Failed" } }), true);
    expect(read(frame(loop(0, "Succeeded")))[0].kind).toBe("loop.succeeded");
  });

  it("is outside of loops in one-shot commands, and before any runner", () => {
    const build = { buildEvent: { artifact: "web", status: "Complete" } };
    expect(reported(last(configured, build))).toBe("build.succeeded | web | build:web 1/0 | web built");
    expect(reported(last(loop(0, "Failed")))).toBe("mirror.received |  | : 0/0 | devLoopEvent Failed");
  });

  it.each([
    [
      "the most precise part",
      { actionableErr, err: "short", errCode: "BUILD_UNKNOWN" },
      { code: "BUILD_USER_ERROR", message: "exit status 1\nat line 3", suggestions: ["Please open an issue"] },
    ],
    ["the events of old servers", { err: "short" }, { code: "", message: "short", suggestions: [] }],
    ["a code without a name", { errCode: 12345 }, { code: "12345", message: "", suggestions: [] }],
    [
      "a suggestion without words",
      { actionableErr: { errCode: "UNKNOWN_ERROR", suggestions: [{ suggestionCode: "OPEN_ISSUE" }] } },
      { code: "UNKNOWN_ERROR", message: "", suggestions: ["OPEN_ISSUE"] },
    ],
    ["nothing", {}, { code: "", message: "", suggestions: [] }],
  ])("takes an error from %s", (_, error, gives) => {
    expect(last({ buildEvent: { artifact: "web", status: "Failed", ...error } }).error).toEqual(gives);
  });

  it("names the field of an event type that came later", () => {
    const { read } = frameReader(v1);
    expect(read(Uint8Array.of(0x12, 4, 0xa2, 0x06, 1, 0x78))[0].detail).toMatchObject({ value: { what: "field 100" } });
  });

  it("keeps its fields small, however large the frame", () => {
    const big = "é😀".repeat(1_000_000);
    const fact = last({ buildEvent: { artifact: big, status: "Failed", err: big } });
    expect(Buffer.byteLength(JSON.stringify(fact, (_, value) => (typeof value === "bigint" ? 0 : value)))).toBeLessThan(
      600_000,
    );
    expect(fact.error?.message.isWellFormed()).toBe(true);
  });

  it("says why it can't read bytes", () => {
    const { read } = frameReader(v1);
    expect(read(Uint8Array.of(0x0a, 200))[0]).toMatchObject({
      kind: "upstream.unreadable",
      summary: expect.stringMatching(/^2 bytes/),
    });
  });
});
