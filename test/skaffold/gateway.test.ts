import { connect } from "node:net";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { LogEntry, TriggerRequest, UserIntentRequest, Event as V1Event } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { until } from "@tapedeck/shared/testing/until";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { infoOf, skaffoldRefusal } from "../stack/error-info.ts";
import { type Stack, startStack } from "../stack/stack.ts";
import { type SkaffoldClient, skaffoldClient } from "./client.ts";

const fixtures = join(import.meta.dirname, "../../packages/fakes/recordings", "skaffold");
const recording = loadRecording(join(fixtures, "01-dev-success-3-artifacts-5-iterations"));
const laterProcess = loadRecording(join(fixtures, "07-two-processes-same-port", "process-b"));
const v1 = (name: string) => `/proto.SkaffoldService/${name}`;
const v2 = (name: string) => `/proto.v2.SkaffoldV2Service/${name}`;

const cleanup = new AsyncDisposableStack();
const audited: Record<string, unknown>[] = [];
let fake: FakeSkaffold;
let stack: Stack;
let client: SkaffoldClient;

beforeAll(async () => {
  const logger = pino({ level: "warn" }, { write: (line: string) => audited.push(JSON.parse(line)) });
  fake = cleanup.use(await startFakeSkaffold({ recording }));
  const times = { loopStartMs: 3_000 };
  stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address, redact: "off" }], logger, times }));
  client = cleanup.use(skaffoldClient(stack.grpc));
  await stack.connected();
  await stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

/** The calls that reached Skaffold since the test began. */
let before = 0;
const arrived = () => fake.calls.slice(before);
beforeEach(() => {
  before = fake.calls.length;
});

/** The whole chunks of a chunked body. */
function chunksIn(body: Buffer): string[] {
  const chunks: string[] = [];
  for (let at = 0; ; ) {
    const end = body.indexOf("\r\n", at);
    if (end < 0) return chunks;
    const length = Number.parseInt(body.toString("utf8", at, end), 16);
    if (body.length < end + 2 + length + 2) return chunks;
    chunks.push(body.toString("utf8", end + 2, end + 2 + length));
    at = end + 2 + length + 2;
  }
}

const intent = (expected: object) =>
  UserIntentRequest.encode(UserIntentRequest.fromPartial({ intent: expected })).finish();
const enabled = (value: boolean) => TriggerRequest.encode({ state: { val: { $case: "enabled", value } } }).finish();
const intentOf = (request: Uint8Array) =>
  Object.entries(UserIntentRequest.decode(request).intent ?? {}).flatMap(([name, is]) => (is === true ? [name] : []));
const controls = async () =>
  (await stack.events()).flatMap(({ event: { kind, detail } }) =>
    detail?.$case === "control" ? [{ kind, ...detail.value }] : [],
  );

/** Resolves with all calls once each request has its answer: an answer is recorded after it was given. */
const answeredControls = () =>
  until(
    async () => {
      const all = await controls();
      const requested = all.filter(({ kind }) => kind === "control.requested").length;
      return 2 * requested === all.length && all;
    },
    { message: "all calls to have their answers on record" },
  );

describe("Handle before Skaffold has read its configuration", () => {
  it.each([
    ["v1", { buildEvent: { artifact: "web", status: "Complete" } }],
    ["v1", { TestEvent: { status: "Complete" } }],
    ["v2", { buildSubtaskEvent: { artifact: "web", step: "Build", status: "Succeeded" } }],
    ["v2", { deploySubtaskEvent: { status: "Succeeded" } }],
  ])("is refused because it would crash Skaffold: %s %j", async (api, event) => {
    const answer = await stack.httpCall("POST", `/${api}/events/handle`, {}, JSON.stringify(event));
    expect(answer.status).toBe(409);
    expect(skaffoldRefusal(answer)).toMatchObject({
      code: 9,
      info: { reason: "refused_dangerous", domain: "tapedeck" },
    });
    expect(arrived()).toEqual([]);
  });
});

describe("with a Skaffold that has finished its first loop", () => {
  const firstLoop = recording.messages.v1.findIndex(({ bytes }) => bytes.includes("Update succeeded")) + 1;
  beforeAll(async () => {
    await fake.playUntil({ v1: firstLoop });
    await stack.recorded({ v1: firstLoop });
  });

  describe("v2's control calls act", () => {
    it("Execute over gRPC", async () => {
      expect(await client.unary(v2("Execute"), intent({ build: true }))).toMatchObject({ code: 0 });
      expect(arrived()).toMatchObject([{ api: "v1", method: v1("Execute") }]);
      expect(intentOf(arrived()[0]?.request ?? Buffer.alloc(0))).toEqual(["build"]);
    });

    it("Execute over HTTP", async () => {
      const answer = await stack.httpCall("POST", "/v2/execute", {}, '{"devloop":true}');
      expect(answer).toMatchObject({ status: 200, body: "{}" });
      expect(answer.headers).toMatchObject({
        "content-type": "application/json",
        "grpc-metadata-content-type": "application/grpc",
      });
      expect(arrived()).toMatchObject([{ api: "v1", method: v1("Execute") }]);
      expect(intentOf(arrived()[0]?.request ?? Buffer.alloc(0))).toEqual(["devloop"]);
    });

    it.each(["Build", "Sync", "Deploy"])("Auto%s over both, with v2's messages where v1 refuses", async (what) => {
      const path = `/v2/${what.toLowerCase()}/auto_execute`;
      expect(await client.unary(v2(`Auto${what}`), enabled(false))).toMatchObject({ code: 0 });
      expect(await client.unary(v2(`Auto${what}`), enabled(false))).toMatchObject({
        code: 6,
        message: `auto ${what} is already set to false`,
      });
      expect(await stack.httpCall("PUT", path, {}, '{"enabled":true}')).toMatchObject({ status: 200, body: "{}" });
      const again = await stack.httpCall("PUT", path, {}, '{"enabled":true}');
      expect([again.status, JSON.parse(again.body)]).toEqual([
        409,
        { code: 6, message: `auto ${what} is already set to true`, details: [] },
      ]);
      expect(arrived().map(({ method }) => method)).toEqual(Array(4).fill(v1(`Auto${what}`)));
    });

    it("a missing `enabled` is false, as in Skaffold", async () => {
      expect(await stack.httpCall("PUT", "/v2/build/auto_execute", {}, "{}")).toMatchObject({ status: 200 });
      const again = await client.unary(v2("AutoBuild"));
      expect(again).toMatchObject({ code: 6, message: "auto Build is already set to false" });
      expect(arrived().map(({ request }) => TriggerRequest.decode(request).state?.val?.value)).toEqual([false, false]);
      await client.unary(v2("AutoBuild"), enabled(true));
    });

    it("bytes that are not a request are refused as Skaffold refuses them", async () => {
      const answer = await client.unary(v2("AutoBuild"), Buffer.from([0x0a, 0xff]));
      expect(answer).toMatchObject({
        code: 13,
        message: expect.stringMatching(/^grpc: error unmarshalling request: /),
      });
      expect(arrived()).toEqual([]);
    });

    it("both the client's call and the call to Skaffold are recorded", async () => {
      await client.unary(v2("Execute"), intent({ sync: true }));
      const newest = async () => (await controls()).at(-1);
      await until(async () => (await newest())?.kind === "control.accepted", { message: "the answer on record" });
      expect(await newest()).toMatchObject({
        method: v2("Execute"),
        forwarded_method: v1("Execute"),
        who: expect.stringContaining("127.0.0.1"),
      });
    });
  });

  it("a call's answer has a position at which the call is on record", async () => {
    const overGrpc = await client.unary(v2("Execute"), intent({ sync: true }));
    const overHttp = await stack.httpCall("POST", "/v2/execute", {}, '{"sync":true}');
    const counts = [];
    for (const position of [overGrpc.metadata.get("tapedeck-position")[0], overHttp.headers["tapedeck-position"]]) {
      const answer = await stack.httpCall("GET", `/api/v1/events?kind=control.*&limit=1000&until=${position}`);
      const kinds = (JSON.parse(answer.body).items as { kind: string }[]).map(({ kind }) => kind);
      expect(kinds.slice(-2)).toEqual(["control.requested", "control.accepted"]);
      counts.push(kinds.length);
    }
    expect((counts[1] ?? 0) - (counts[0] ?? 0)).toBe(2);
  });

  describe("v1's rules hold", () => {
    it.each([["{}"], [undefined], ['{"state":{"enabled":true}}']])(
      "AutoSync with the body %s lacks `enabled`",
      async (body) => {
        const answer = await stack.httpCall("PUT", "/v1/sync/auto_execute", {}, body);
        const message = "missing required boolean parameter 'enabled'";
        expect([answer.status, JSON.parse(answer.body)]).toEqual([400, { code: 3, message, details: [] }]);
      },
    );

    it("AutoSync over gRPC without `enabled` is refused too", async () => {
      const message = "missing required boolean parameter 'enabled'";
      expect(await client.unary(v1("AutoSync"))).toMatchObject({ code: 3, message });
    });

    it.each(["build", "sync", "deploy"])("setting auto %s to its current value is 409", async (what) => {
      const path = `/v1/${what}/auto_execute`;
      const answer = await stack.httpCall("PUT", path, {}, '{"enabled":true}');
      expect(answer.status).toBe(409);
      const message = `auto ${what} is already set to true`;
      expect(JSON.parse(answer.body)).toEqual({ code: 6, message, details: [] });
    });
  });

  describe("Execute with several intents", () => {
    it("runs them one after the other, each after the previous loop has ended, and records each", async () => {
      const entries = recording.messages.v1.map(({ bytes }) => bytes.toString("latin1"));
      const ends = entries.findIndex((text, at) => at >= firstLoop && text.includes("Update succeeded"));
      const known = (await answeredControls()).length;
      const answer = await stack.httpCall("POST", "/v1/execute", {}, '{"deploy":true,"build":true}');
      expect(answer).toMatchObject({ status: 200, body: "{}" });
      await fake.playUntil({ v1: ends });
      await stack.recorded({ v1: ends });
      expect(arrived().map(({ request }) => intentOf(request))).toEqual([["build"]]);
      await fake.playUntil({ v1: ends + 1 });
      await until(() => arrived().length === 2, { message: "the second intent" });
      expect(arrived().map(({ request }) => intentOf(request))).toEqual([["build"], ["deploy"]]);
      await until(async () => (await controls()).length === known + 4, { message: "both on record" });
      expect(
        (await controls()).slice(known).map(({ kind, forwarded_request }) => [kind, intentOf(forwarded_request)]),
      ).toEqual([
        ["control.requested", ["build", "deploy"]],
        ["control.accepted", ["build"]],
        ["control.requested", ["deploy"]],
        ["control.accepted", ["deploy"]],
      ]);
    });

    it("works for v2 and when no loop begins", async () => {
      expect(await client.unary(v2("Execute"), intent({ build: true, sync: true, deploy: true }))).toMatchObject({
        code: 0,
      });
      await until(() => arrived().length === 3, { message: "three intents" });
      expect(arrived().map(({ method, request }) => [method, intentOf(request)])).toEqual([
        [v1("Execute"), ["build"]],
        [v1("Execute"), ["sync"]],
        [v1("Execute"), ["deploy"]],
      ]);
    });
  });

  describe("Handle", () => {
    it.each([
      ["v1", "/v1/events/handle", "/v1/events"],
      ["v2", "/v2/events/handle", "/v2/events"],
    ] as const)("passes through in %s, and comes back marked as injected", async (api, path, stream) => {
      const text = `hello by ${api}`;
      const event = api === "v1" ? { metaEvent: { entry: text } } : { skaffoldLogEvent: { message: text } };
      expect(await stack.httpCall("POST", path, {}, JSON.stringify(event))).toMatchObject({ status: 200, body: "{}" });
      expect(arrived()).toMatchObject([{ api, name: "Handle" }]);
      const isIt = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).includes(text);
      const mine = await until(
        async () =>
          (await stack.events()).find(({ event: { channel, original } }) => channel === api && isIt(original?.bytes)),
        { message: "the event on record" },
      );
      expect(mine.event.injected).toBe(true);
      const count = (await stack.events()).filter(
        ({ event: { channel, part } }) => channel === api && part === 0,
      ).length;
      const lines = await stack.httpLines(stream, count);
      expect(lines.at(-1)).toMatchObject({ result: api === "v1" ? { event } : event });
    });

    const failed = { iteration: 1, status: "Failed" };
    it.each([
      ["v1", { terminationEvent: { status: "Complete" } }],
      ["v1", { devLoopEvent: failed }],
      ["v2", { terminationEvent: {} }],
      ["v2", { timestamp: { seconds: 999_999_999_999n, nanos: 0 }, terminationEvent: {} }],
      ["v2", { statusCheckSubtaskEvent: { resource: "web", status: "Succeeded" } }], // v2 Auto* was called above
    ])("refuses events that would crash Skaffold: %s %o", async (api, event) => {
      const [[name, value]] = Object.entries(event).filter(([field]) => field !== "timestamp") as [[string, object]];
      const fields = { ...event, event_type: { $case: name, value } };
      const request =
        api === "v1"
          ? V1Event.encode(V1Event.fromPartial(fields as object))
          : V2Event.encode(V2Event.fromPartial(fields as object));
      const path = api === "v1" ? v1("Handle") : v2("Handle");
      const answer = await client.unary(path, request.finish());
      expect(answer).toMatchObject({ code: 9, message: expect.stringContaining("crash") });
      expect(infoOf(answer)).toEqual({ reason: "refused_dangerous", domain: "tapedeck", metadata: {} });
      if (!("timestamp" in event)) {
        const overHttp = await stack.httpCall("POST", `/${api}/events/handle`, {}, JSON.stringify({ [name]: value }));
        expect(overHttp.status).toBe(409);
        expect(skaffoldRefusal(overHttp)).toEqual({ code: 9, message: answer.message, info: infoOf(answer) });
      }
      expect(arrived()).toEqual([]);
    });

    it("checks an event in several parts as Skaffold assembles it", async () => {
      const part = (event: object) =>
        V1Event.encode(V1Event.fromPartial({ event_type: { $case: "devLoopEvent", value: event } })).finish();
      const request = Buffer.concat([part({ status: "Failed" }), part({ iteration: 1 })]);
      expect(await client.unary(v1("Handle"), request)).toMatchObject({ code: 9 });
      expect(arrived()).toEqual([]);
    });

    it("passes a failed loop with its error", async () => {
      const event = { devLoopEvent: { ...failed, err: { errCode: "BUILD_CANCELLED", message: "enough" } } };
      expect(await stack.httpCall("POST", "/v1/events/handle", {}, JSON.stringify(event))).toMatchObject({
        status: 200,
      });
      expect(arrived()).toHaveLength(1);
    });

    it("a refusal is logged and counted but not recorded", async () => {
      const known = (await answeredControls()).length;
      await client.unary(
        v1("Handle"),
        V1Event.encode({ event_type: { $case: "terminationEvent", value: { status: "", err: undefined } } }).finish(),
      );
      expect(audited.at(-1)).toMatchObject({
        audit: "control refused",
        who: expect.stringContaining("127.0.0.1"),
        source: stack.source,
        method: v1("Handle"),
        code: "refused_dangerous",
      });
      const metrics = await stack.httpCall("GET", "/metrics");
      expect(metrics.body).toMatch(/tapedeck_gateway_control_refused_total\{code="refused_dangerous"[^}]*\} \d+/);
      expect(await controls()).toHaveLength(known);
    });
  });

  it("sends one message in each chunk over HTTP, as Skaffold does", async () => {
    const count = 5;
    const [host = "", port = ""] = stack.http.split(":");
    const socket = connect({ host, port: Number(port) });
    let text = "";
    socket.setEncoding("utf8").on("data", (some: string) => {
      text += some;
    });
    socket.write(`GET /v1/events HTTP/1.1\r\nhost: ${stack.http}\r\n\r\n`);
    await until(() => text.split('{"result":').length > count, { message: "all messages" });
    socket.destroy();
    const chunks = chunksIn(Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4)));
    expect(chunks.length).toBeGreaterThanOrEqual(count - 1);
    for (const chunk of chunks) expect(Object.keys(JSON.parse(chunk))).toEqual(["result"]);
  });

  it.each([
    [{ "tapedeck-at": "2026-01-01T00:00:00Z" }, { status: 400, reason: "invalid_argument" }],
    [{ "tapedeck-session": "01JUNKNOWN" }, { status: 404, reason: "unknown_session" }],
    [{ "tapedeck-source": "carol/shop" }, { status: 404, reason: "unknown_source" }],
  ])("a control call with %j is refused", async (headers, { status, reason }) => {
    const answer = await stack.httpCall("POST", "/v1/execute", headers, '{"build":true}');
    expect(answer.status).toBe(status);
    expect(skaffoldRefusal(answer).info).toMatchObject({ reason });
    expect(arrived()).toEqual([]);
  });
});

describe("without a receiver for a control call", () => {
  const refusedAtOnce = async (code: string, words: RegExp) => {
    const since = performance.now();
    const overGrpc = await client.unary(v1("Execute"), intent({ build: true }));
    const overHttp = await stack.httpCall("POST", "/v2/execute", {}, '{"build":true,"deploy":true}');
    expect(performance.now() - since).toBeLessThan(29_000); // not the half-minute timeout of a call
    expect(overGrpc).toMatchObject({ code: 14, message: expect.stringMatching(words) });
    expect(infoOf(overGrpc)).toMatchObject({ reason: code });
    expect(overHttp.status).toBe(503);
    expect(skaffoldRefusal(overHttp)).toMatchObject({ code: 14, info: { reason: code } });
    return overHttp;
  };

  it("a missing Skaffold is upstream_away, and nothing is kept for later", async () => {
    const session = (await stack.events()).findLast(({ event }) => event.session !== "")?.event.session ?? "";
    await fake.end("kill");
    await stack.sessionEnded();
    await refusedAtOnce("upstream_away", /not connected/);
    const named = await client.unary(v1("Execute"), intent({ build: true }), { "tapedeck-session": session });
    expect(infoOf(named)).toMatchObject({ reason: "upstream_away" });
    expect(named.message).toContain("has ended");

    await using next = await startFakeSkaffold({ recording: laterProcess, port: fake.port });
    await until(() => next.peers.size > 0, { message: "the next process to be tapped" });
    await next.playUntil({ v1: 5 });
    await stack.recorded({ v1: 5 });
    expect(next.calls).toEqual([]);
    expect(LogEntry.decode((await client.take(v1("Events"), 1))[0] ?? Buffer.alloc(0)).event).toBeDefined();
  });

  it("a missing ingest is upstream_away with a suggestion", async () => {
    await stack.parts.ingest[Symbol.asyncDispose]();
    await refusedAtOnce("upstream_away", /is not being recorded now.*tapedeck run/);
  });

  it("a missing NATS is not_ready with the time to retry", async () => {
    await stack.parts.nats.stop();
    await until(async () => (await stack.httpCall("POST", "/v1/execute", {}, "{}")).headers["retry-after"] === "1", {
      message: "the loss to be noticed",
    });
    await refusedAtOnce("not_ready", /can't be reached/);
  });
});
