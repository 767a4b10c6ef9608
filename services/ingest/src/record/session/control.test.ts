import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { UserIntentRequest, Event as V1Event } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ControlCall, ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { controlTimeouts } from "@tapedeck/shared/control-timeouts";
import { controlSubject } from "@tapedeck/shared/log/subjects";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { readConfig } from "../../config.ts";
import { startIngest } from "../../ingest.ts";
import { normalizer } from "../../normalize/skaffold/normalizer.ts";
import { framesOf, kindsOf, openLogReader, skaffoldSource, testLogger } from "../../testing/ingest-harness.ts";
import type { RecordingTimes } from "../recorder-options.ts";
import { ControlCalls, type ControlOptions } from "./control.ts";

let nats: TestNats;
let logReader: Awaited<ReturnType<typeof openLogReader>>;

beforeAll(async () => {
  nats = await startTestNats();
  logReader = await openLogReader(nats.url);
});

afterAll(async () => {
  await logReader[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

const recording = loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`);

async function startHarness(developer: string, times: RecordingTimes = {}) {
  await using stack = new AsyncDisposableStack();
  const fake = stack.use(await startFakeSkaffold({ recording, port: await ownPort() }));
  const { folder } = stack.use(await temporaryFolder());
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_INGEST_SPILL_DIR: folder,
    TAPEDECK_SOURCES: JSON.stringify([{ developer, project: "shop", address: fake.address, redact: "off" }]),
  };
  const ingest = stack.use(await startIngest({ ...readConfig({ env }), times }, testLogger));
  const source = skaffoldSource(developer);
  const events = () => logReader.events(source);
  const owned = stack.move();
  return {
    fake,
    ingest,
    events,
    kinds: async () => kindsOf(await events()).filter((kind) => kind.startsWith("control.")),
    async frames(count: number) {
      await fake.playUntil({ v1: count });
      await until(async () => framesOf(await events(), "v1").length === count, { message: `${count} frames` });
    },
    async call(method: string, request: Uint8Array, forwarded = method): Promise<ControlReply> {
      const bytes = Buffer.from(request);
      const fields = { method, request: bytes, forwarded_method: forwarded, forwarded_request: bytes, who: "a test" };
      const reply = await logReader.nats.request(controlSubject(source), ControlCall.encode(fields).finish(), {
        timeout: 60_000,
      });
      return ControlReply.decode(reply.data);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const execute = (intent: { build?: boolean; deploy?: boolean }) =>
  UserIntentRequest.encode({
    intent: { build: false, sync: false, deploy: false, devloop: false, ...intent },
  }).finish();
const intentOf = (request: Uint8Array) =>
  Object.entries(UserIntentRequest.decode(request).intent ?? {})
    .flatMap(([name, expected]) => (expected === true ? [name] : []))
    .join(" ");
const path = "/proto.SkaffoldService/Execute";
const controlOf = (events: readonly Event[]) =>
  events.flatMap(({ kind, detail }) => (detail?.$case === "control" ? [{ kind, ...detail.value }] : []));

it("a call reaches Skaffold, and what was asked and answered is recorded", async () => {
  await using harness = await startHarness("one");
  await harness.frames(10);
  const reply = await harness.call(path, execute({ build: true }));
  expect(reply).toMatchObject({ code: 0, reason: "" });
  expect(harness.fake.calls.map(({ method }) => method)).toEqual([path]);
  await until(async () => (await harness.kinds()).length === 2, { message: "the answer to be recorded" });
  const [requested, accepted] = controlOf(await harness.events());
  expect(requested).toMatchObject({ kind: "control.requested", method: path, who: "a test" });
  expect(accepted).toMatchObject({ kind: "control.accepted", call: requested?.call, forwarded_method: path, code: 0 });
});

it("of two intents the second waits for the end of the loop that the first has started", async () => {
  // The loop is recorded in time, however busy the machine is.
  await using harness = await startHarness("two", { loopStartMs: 600_000 });
  const entries = recording.messages.v1.map(({ bytes }) => bytes.toString("latin1"));
  const started = entries.findIndex((text, i) => i > 10 && text.includes("Update initiated"));
  const ended = entries.findIndex((text, i) => i > started && text.includes("Update succeeded"));
  await harness.frames(started);
  const reply = await harness.call(path, execute({ build: true, deploy: true }));
  expect(reply.code).toBe(0);
  await harness.frames(ended);
  expect(harness.fake.calls).toHaveLength(1);
  await harness.frames(ended + 1);
  await until(() => harness.fake.calls.length === 2, { message: "the second step" });
  expect(harness.fake.calls.map(({ request }) => UserIntentRequest.decode(request).intent)).toMatchObject([
    { build: true, deploy: false },
    { build: false, deploy: true },
  ]);
  await until(async () => (await harness.kinds()).length === 4, { message: "both answers to be recorded" });
  expect(
    controlOf(await harness.events()).map(({ kind, forwarded_request }) => [kind, intentOf(forwarded_request)]),
  ).toEqual([
    ["control.requested", "build deploy"],
    ["control.accepted", "build"],
    ["control.requested", "deploy"],
    ["control.accepted", "deploy"],
  ]);
});

it("or, when none has started, it follows by itself", async () => {
  await using harness = await startHarness("none");
  await harness.frames(10);
  await harness.call(path, execute({ build: true, deploy: true }));
  await until(() => harness.fake.calls.length === 2, { message: "the second step" });
});

it("Skaffold's refusal is the answer, and recorded as one", async () => {
  await using harness = await startHarness("no");
  await harness.frames(10);
  const reply = await harness.call("/proto.SkaffoldService/AutoBuild", Buffer.alloc(0));
  expect(reply).toMatchObject({ code: 3, message: expect.stringContaining("enabled"), reason: "" });
  await until(async () => (await harness.kinds()).includes("control.rejected"), { message: "the refusal" });
});

it("an event that came through Handle is marked", async () => {
  await using harness = await startHarness("handle");
  await harness.frames(10);
  const custom = V1Event.encode({
    event_type: { $case: "metaEvent", value: { entry: "hello from a test", metadata: undefined } },
  }).finish();
  const reply = await harness.call("/proto.SkaffoldService/Handle", custom);
  expect(reply).toMatchObject({ code: 0 });
  await until(async () => (await harness.events()).some(({ injected }) => injected), { message: "the marked event" });
  const marked = (await harness.events()).filter(({ injected }) => injected);
  expect(marked.map(({ original }) => original?.bytes.toString("latin1"))).toEqual([
    expect.stringContaining("hello from a test"),
  ]);
});

it("without an upstream nothing is queued", async () => {
  await using harness = await startHarness("away");
  await harness.frames(10);
  await harness.fake.end("kill");
  await until(() => harness.ingest.status()[0]?.connected === false, { message: "the end to be noticed" });
  const reply = await harness.call(path, execute({ build: true }));
  expect(reply).toMatchObject({ code: 14, reason: "upstream_away" });
  expect(harness.fake.calls).toEqual([]);
});

it("a call that the log could not take is refused, and neither recorded nor sent", async () => {
  await using harness = await startHarness("much");
  await harness.frames(10);
  const reply = await harness.call(path, Buffer.alloc(3_700_000));
  expect(reply).toMatchObject({ code: 8, reason: "limit_exceeded", message: expect.stringContaining("3700000 bytes") });
  expect(await harness.call(path, execute({ build: true }))).toMatchObject({ code: 0 });
  await until(async () => (await harness.kinds()).length === 2, { message: "the other call to be recorded" });
  expect(controlOf(await harness.events()).map(({ request }) => request.byteLength < 100)).toEqual([true, true]);
  expect(harness.fake.calls).toHaveLength(1);
});

it("a call whose turn comes too late for its caller is recorded as rejected, and never sent", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const said: string[] = [];
  const requests: string[] = [];
  const stalled = Promise.withResolvers<void>();
  const recorder: ControlOptions["recorder"] = {
    recordFact: async ({ kind, detail }) => {
      said.push(`${kind} ${detail?.$case === "control" ? detail.value.who : ""}`);
    },
    injections: { expect: () => {}, forget: () => {} },
    connected: true,
    listeners: new Set(),
  };
  const control = new ControlCalls({
    recorder,
    normalizer,
    signal: new AbortController().signal,
    ask: async ({ call, method }) => {
      requests.push(method);
      if (method.endsWith("Handle")) await stalled.promise;
      return { call, code: 0, message: "", response: Buffer.alloc(0) };
    },
  });
  const call = (name: string, who: string) => {
    const method = `/proto.SkaffoldService/${name}`;
    const request = Buffer.alloc(0);
    return control.make({ method, request, forwarded_method: method, forwarded_request: request, who });
  };
  const first = call("Handle", "first");
  const late = call("Execute", "late");
  await until(() => requests.length === 1, { message: "the first to be asked" });
  vi.advanceTimersByTime(controlTimeouts.turnMs - 1);
  const early = call("AutoBuild", "early");
  vi.advanceTimersByTime(2);
  stalled.resolve();

  expect(await first).toMatchObject({ code: 0, reason: "" });
  expect(await late).toMatchObject({
    code: 14,
    reason: "upstream_away",
    message: expect.stringContaining("took too long"),
  });
  expect(await early).toMatchObject({ code: 0 });
  expect(requests).toEqual(["/proto.SkaffoldService/Handle", "/proto.SkaffoldService/AutoBuild"]);
  expect(said).toEqual([
    ...["control.requested first", "control.accepted first", "control.requested late", "control.rejected late"],
    ...["control.requested early", "control.accepted early"],
  ]);
});
