import { once } from "node:events";
import http2 from "node:http2";
import { setImmediate } from "node:timers/promises";
import { Client, type ClientReadableStream, credentials, type ServiceError } from "@grpc/grpc-js";
import { Event as EventV1, LogEntry, State as StateV1, UserIntentRequest } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import {
  type ApiVersion,
  type SkaffoldChannel,
  services,
  streamMethods,
  unaryMethods,
} from "@tapedeck/shared/skaffold/methods";
import { defaultDeadlineMs } from "@tapedeck/shared/testing/until";
import { describe, expect, it, vi } from "vitest";
import { loadRecording, type RecordedUpstream } from "./recording.ts";
import { type FakeSkaffold, startFakeSkaffold } from "./server.ts";

const load = (name: string) => loadRecording(new URL(`../../recordings/skaffold/${name}`, import.meta.url).pathname);
const until = (check: () => void) => vi.waitFor(check, { timeout: defaultDeadlineMs, interval: 10 });
const bytesOf = (recording: RecordedUpstream, channel: SkaffoldChannel) =>
  recording.messages[channel].map(({ bytes }) => bytes);

/** The recording with enough console output that a replay takes a while: the experiments printed 20,000 lines. */
function talkative(recording: RecordedUpstream): RecordedUpstream {
  const at = recording.messages.v1[0]?.at ?? 0;
  const line = (index: number) => {
    const message = `line ${index} ${"x".repeat(100)}\n`;
    const value = { task_id: "Build-1", subtask_id: "web", level: 7, message } as const;
    const event_type = { $case: "skaffoldLogEvent", value } as const;
    return {
      at,
      bytes: Buffer.from(Event.encode({ timestamp: { seconds: BigInt(index), nanos: 0 }, event_type }).finish()),
    };
  };
  return { ...recording, messages: { ...recording.messages, v2: Array.from({ length: 20_000 }, (_, i) => line(i)) } };
}

function connect(fake: FakeSkaffold) {
  // A connection for each, as every reader of the experiments had.
  const client = new Client(fake.address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  return {
    listen(channel: SkaffoldChannel, { read = true } = {}) {
      const { path, requestSerialize, responseDeserialize } = streamMethods[channel];
      const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, Buffer.alloc(0));
      const got: Buffer[] = [];
      const ended = new Promise<number>((resolve) => stream.on("status", ({ code }) => resolve(code)));
      stream.on("error", () => {});
      stream.on("data", (bytes: Buffer) => got.push(bytes));
      // grpc-js reads for itself until the first message has been taken.
      if (!read) stream.once("data", () => stream.pause());
      return { stream: stream as ClientReadableStream<Buffer>, got, ended };
    },
    call(path: string, request: Uint8Array) {
      const method = unaryMethods.get(path) ?? services.v1.getState;
      return new Promise<{ code: number; message: string; response: Buffer }>((resolve) =>
        client.makeUnaryRequest(
          path,
          method.requestSerialize,
          method.responseDeserialize,
          Buffer.from(request),
          (error: ServiceError | null, response?: Buffer) =>
            resolve(
              error
                ? { code: error.code, message: error.details, response: Buffer.alloc(0) }
                : { code: 0, message: "", response: response ?? Buffer.alloc(0) },
            ),
        ),
      );
    },
    [Symbol.dispose]: () => client.close(),
  };
}

describe("a stream", () => {
  const recording = load("10-status-check-port-forward-sync-app-logs");

  it("has the log so far, then what happens, byte for byte", async () => {
    await using fake = await startFakeSkaffold({ recording });
    using early = connect(fake);
    const first = early.listen("v2");
    await until(() => expect(fake.health.v2.listeners).toBe(1));
    await fake.playUntil({ v2: 150 });
    using late = connect(fake);
    const second = late.listen("v2");
    await until(() => expect(second.got).toHaveLength(150));
    await fake.play();
    await until(() => expect([first.got.length, second.got.length]).toEqual([301, 301]));
    expect(second.got).toEqual(bytesOf(recording, "v2"));
    expect(first.got).toEqual(second.got);
    expect(fake.peers.size).toBe(2);
  });

  it("of application logs starts with the current loop", async () => {
    await using fake = await startFakeSkaffold({ recording });
    using client = connect(fake);
    const early = client.listen("logs");
    await until(() => expect(fake.health.logs.listeners).toBe(1));
    await fake.play();
    const late = client.listen("logs");
    await until(() => expect([early.got.length, late.got.length]).toEqual([15, 3]));
    expect(early.got.slice(12)).toEqual(late.got);
  });

  it("may have its replay out of order, with nothing lost and nothing twice", async () => {
    await using fake = await startFakeSkaffold({ recording, mixReplays: 1 });
    await fake.playUntil({ v2: 250 });
    using client = connect(fake);
    const { got } = client.listen("v2");
    await until(() => expect(fake.health.v2.listeners).toBe(1));
    await fake.play();
    await until(() => expect(got).toHaveLength(301));
    const inOrder = bytesOf(recording, "v2");
    expect(got).not.toEqual(inOrder);
    expect(got.toSorted(Buffer.compare)).toEqual(inOrder.toSorted(Buffer.compare));
  });

  it.each([
    ["kill", 0],
    ["graceful", 900],
  ] as const)("is cut in mid-sentence by %s", async (how, atLeastMs) => {
    await using fake = await startFakeSkaffold({ recording });
    using client = connect(fake);
    const { ended } = client.listen("v1");
    await until(() => expect(fake.health.v1.listeners).toBe(1));
    const start = performance.now();
    await fake.end(how);
    expect(await ended).toBe(14);
    expect(performance.now() - start).toBeGreaterThanOrEqual(atLeastMs);
  });
});

describe("15-hang-disconnect-during-replay", () => {
  const recording = talkative(load("15-hang-disconnect-during-replay"));

  it("hangs for ever at the next event, but answers GetState and opens nothing", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v2: 19_000 });
    using client = connect(fake);
    const { stream } = client.listen("v2", { read: false });
    await until(() => expect(fake.health.v2.opened).toBe(1));
    stream.cancel();
    await until(() => expect(fake.health.v2.doomed).toBe(true));
    expect(fake.hung).toEqual([]);
    void fake.play();
    await until(() => expect(fake.hung).toEqual(["v2"]));
    expect(fake.played.v2).toBe(19_000);
    expect((await client.call(services.v2.getState.path, Buffer.alloc(0))).code).toBe(0);
    const { got } = client.listen("v2");
    await until(() => expect(fake.health.v2.opened).toBe(2));
    await hearLater(fake, client);
    expect(got).toEqual([]);
  });

  it("does no harm after the replay (15-disconnect-after-replay-is-safe, 15-drops-grpc-idle)", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v2: 1_000 });
    using client = connect(fake);
    for (let reader = 0; reader < 12; reader++) {
      const { stream, got } = client.listen("v2");
      await until(() => expect(got).toHaveLength(1_000));
      stream.cancel();
    }
    await fake.play();
    expect(fake.played.v2).toBe(20_000);
    await until(() => expect(fake.health.v2).toMatchObject({ doomed: false, hung: false, listeners: 0 }));
  });

  it("does no harm in the middle of live events either (15-drops-grpc-live)", async () => {
    await using fake = await startFakeSkaffold({ recording });
    using client = connect(fake);
    const { stream, got } = client.listen("v2");
    await until(() => expect(fake.health.v2.listeners).toBe(1));
    const played = fake.play();
    await until(() => expect(got.length).toBeGreaterThan(2_000));
    stream.cancel();
    await played;
    expect(fake.hung).toEqual([]);
  });
});

it("15-hang-reader-stops-reading: everything stops until it reads again", async () => {
  const recording = talkative(load("15-hang-reader-stops-reading"));
  await using fake = await startFakeSkaffold({ recording });
  using client = connect(fake);
  const { stream } = client.listen("v2", { read: false });
  await until(() => expect(fake.health.v2.listeners).toBe(1));
  const played = fake.play();
  await until(() => expect(fake.health.v2.stalled).toBe(true));
  const stuckAt = await steady(() => fake.played.v2);
  expect(stuckAt).toBeLessThan(20_000);
  // Another reader gets nothing either, and nothing of the other API happens.
  const other = client.listen("v2");
  await until(() => expect(fake.health.v2.opened).toBe(2));
  await hearLater(fake, client);
  expect([other.got.length, fake.played.v1, fake.played.v2]).toEqual([0, 1, stuckAt]);
  stream.resume();
  await played;
  expect(fake.played).toEqual({ v1: 23, v2: 20_000, logs: 0 });
  await until(() => expect(other.got).toHaveLength(20_000));
});

/** A number when it has stopped changing: fake and client are in this process, so it changes with the event loop's turns. */
async function steady(read: () => number): Promise<number> {
  let value = read();
  for (let same = 0; same < 100; same++) {
    await setImmediate();
    if (read() !== value) same = 0;
    value = read();
  }
  return value;
}

/** Opens v1 and has all that it has said: what was opened before would have been heard by then. */
async function hearLater(fake: FakeSkaffold, client: ReturnType<typeof connect>): Promise<void> {
  const { got } = client.listen("v1");
  expect(fake.played.v1).toBeGreaterThan(0);
  await until(() => expect(got).toHaveLength(fake.played.v1));
}

describe("17-invalid-utf8-in-build-output", () => {
  const recording = load("17-invalid-utf8-in-build-output");

  it("breaks v2 and goes on with v1", async () => {
    await using fake = await startFakeSkaffold({ recording });
    using client = connect(fake);
    const v1 = client.listen("v1");
    const v2 = client.listen("v2");
    await until(() => expect(fake.health.v2.listeners + fake.health.v1.listeners).toBe(2));
    await fake.play();
    expect(await v2.ended).toBe(13);
    expect(v2.got).toEqual(bytesOf(recording, "v2"));
    await until(() => expect(v1.got).toHaveLength(24));
  });

  it("breaks v2 again at each reconnect, and hangs with the next event", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v1: 23, v2: 79 });
    using client = connect(fake);
    const again = client.listen("v2");
    expect(await again.ended).toBe(13);
    expect(again.got).toHaveLength(78);
    void fake.play();
    await until(() => expect(fake.hung).toEqual(["v2"]));
  });
});

it("21-old-v0.40.0: lacks v2 and the Auto calls, and its Events takes a stream", async () => {
  const recording = load("21-old-v0.40.0");
  await using fake = await startFakeSkaffold({ recording });
  await fake.play();
  using client = connect(fake);
  const v1 = client.listen("v1");
  expect(await client.listen("v2").ended).toBe(12);
  expect(await client.listen("logs").ended).toBe(12);
  expect((await client.call(services.v1.autoBuild.path, Buffer.alloc(0))).code).toBe(12);
  await until(() => expect(v1.got).toEqual(bytesOf(recording, "v1")));
});

describe("GetState", () => {
  const recording = load("01-dev-success-3-artifacts-5-iterations");
  const quiet = recording.states.filter(({ seenBefore, seenAfter }) => seenBefore === seenAfter);
  const stateOf = async (client: ReturnType<typeof connect>, api: ApiVersion) =>
    toGatewayJson(
      messageType(api === "v1" ? "proto.State" : "proto.v2.State"),
      (await client.call(services[api].getState.path, Buffer.alloc(0))).response,
    );

  it("is empty before the first event", async () => {
    await using fake = await startFakeSkaffold({ recording });
    using client = connect(fake);
    expect(Object.values(await stateOf(client, "v1")).filter((value) => value !== null)).toEqual([{}, []]);
  });

  it("is the recorded one in every quiet moment", async () => {
    await using fake = await startFakeSkaffold({ recording });
    using client = connect(fake);
    for (const { api, seenAfter, json } of quiet) {
      await fake.playUntil({ [api]: seenAfter });
      expect(await stateOf(client, api)).toEqual(json);
    }
    expect(quiet).toHaveLength(10);
  });

  it("is the recorded one between recorded calls", async () => {
    const controlled = load("05-control-api-auto-off");
    await using fake = await startFakeSkaffold({ recording: controlled });
    using client = connect(fake);
    const steps = [...controlled.states, ...controlled.calls].sort((a, b) => a.at - b.at);
    for (const step of steps) {
      if ("method" in step) await client.call(step.method, step.request);
      else {
        const seen = controlled.states.filter(({ at }) => at <= step.at);
        const count = (api: ApiVersion) => seen.findLast((state) => state.api === api)?.seenBefore ?? 0;
        await fake.playUntil({ v1: count("v1"), v2: count("v2") });
        expect(await stateOf(client, step.api), step.file).toEqual(step.json);
      }
    }
  });
});

describe("control calls", () => {
  it.each(["05-control-api-auto-off", "09-error-responses", "20-old-v1.39.18"])(
    "%s: answers as recorded",
    async (name) => {
      const recording = load(name);
      await using fake = await startFakeSkaffold({ recording });
      using client = connect(fake);
      for (const { method, request, answer, label } of recording.calls) {
        expect(await client.call(method, request), label).toEqual(answer);
      }
      expect(fake.calls.map(({ method, recorded }) => ({ method, recorded }))).toEqual(
        recording.calls.map(({ method }) => ({ method, recorded: true })),
      );
    },
  );

  it("follow the real rules where nothing was recorded", async () => {
    await using fake = await startFakeSkaffold({ recording: load("01-dev-success-3-artifacts-5-iterations") });
    await fake.play();
    using client = connect(fake);
    const on = Buffer.from([10, 2, 8, 1]);
    const off = Buffer.from([10, 2, 8, 0]);
    const { v1, v2 } = services;
    const execute = UserIntentRequest.encode({ intent: { build: true, sync: false, deploy: false, devloop: false } });
    expect(await client.call(v1.autoBuild.path, on)).toMatchObject({
      code: 6,
      message: "auto build is already set to true",
    });
    expect(await client.call(v2.autoSync.path, on)).toMatchObject({
      code: 6,
      message: "auto Sync is already set to true",
    });
    expect(await client.call(v1.autoDeploy.path, off)).toMatchObject({ code: 0 });
    expect(await client.call(v1.autoDeploy.path, off)).toMatchObject({ code: 6 });
    expect(await client.call(v1.autoSync.path, Buffer.alloc(0))).toMatchObject({ code: 3 });
    expect(await client.call(v2.autoSync.path, Buffer.alloc(0))).toMatchObject({ code: 0 });
    expect(await client.call(v1.execute.path, execute.finish())).toMatchObject({ code: 0 });
    expect(await client.call(v1.execute.path, Buffer.from([255]))).toMatchObject({ code: 13 });
    const { response } = await client.call(v1.getState.path, Buffer.alloc(0));
    const state = toGatewayJson(messageType("proto.State"), response);
    expect(state).toMatchObject({ buildState: { autoTrigger: true }, deployState: { autoTrigger: false } });
  });

  it.each(["08b-handle-crash-v1-devloop-failed-without-err", "08c-handle-crash-v2-status-check-after-auto-toggle"])(
    "%s: ends the process",
    async (name) => {
      const recording = load(name);
      await using fake = await startFakeSkaffold({ recording });
      using client = connect(fake);
      const answers = [];
      for (const { method, request } of recording.calls) answers.push((await client.call(method, request)).code);
      expect(answers.at(-1)).toBe(14);
      await fake.ended;
    },
  );
});

it("puts an event that came through Handle into the stream, stamped now", async () => {
  await using fake = await startFakeSkaffold({ recording: load("01-dev-success-3-artifacts-5-iterations") });
  using client = connect(fake);
  const v1 = client.listen("v1");
  const logs = client.listen("logs");
  await until(() => expect(fake.health.v1.listeners + fake.health.logs.listeners).toBe(2));
  const meta = { $case: "metaEvent", value: { entry: "hi" } } as const;
  const handled = await client.call(services.v1.handle.path, EventV1.encode({ event_type: meta }).finish());
  expect(handled.code).toBe(0);
  await until(() => expect(v1.got.map((bytes) => LogEntry.decode(bytes).event?.event_type)).toMatchObject([meta]));
  const log = { containerName: "c", podName: "p", prefix: "", message: "m", richFormattedMessage: "" };
  const line = Event.encode({ event_type: { $case: "applicationLogEvent", value: log } });
  await client.call(services.v2.handle.path, line.finish());
  await until(() => expect(logs.got).toHaveLength(1));
});

it("16-experiments: hangs up on whoever pings too often", async () => {
  await using fake = await startFakeSkaffold({ recording: load("16-experiments") });
  const session = http2.connect(`http://${fake.address}`);
  const goaway = once(session, "goaway");
  session.on("error", () => {});
  const headers = {
    ":method": "POST",
    ":path": services.v1.events.path,
    "content-type": "application/grpc",
    te: "trailers",
  };
  const stream = session.request(headers);
  stream.on("error", () => {});
  stream.end(Buffer.alloc(5));
  await until(() => expect(fake.health.v1.listeners).toBe(1));
  for (let ping = 1; ping <= 4; ping++) session.ping(() => {});
  const [code, , data] = await goaway;
  expect([code, String(data)]).toEqual([11, "too_many_pings"]);
  await until(() => expect(fake.pings()).toBe(4));
});

it("finds an artifact in the cache in every other round, where that is asked for", async () => {
  const recording = load("01-dev-success-3-artifacts-5-iterations");
  await using fake = await startFakeSkaffold({ recording, loop: { pauseMs: 1_000, cacheHits: true } });
  // The round as recorded, one with a hit, and one without.
  await fake.playUntil({ v1: 35 + 22 + 24 });
  using client = connect(fake);
  const { got } = client.listen("v2");
  const observations = () =>
    got.flatMap((bytes) => {
      const event = Event.decode(bytes).event_type;
      const isObservation = event?.$case === "buildSubtaskEvent" && event.value.step === "Cache";
      return isObservation && event.value.status !== "InProgress" ? [event.value.status] : [];
    });
  await until(() => expect(got).toHaveLength(fake.played.v2));
  expect(observations().length).toBeGreaterThanOrEqual(12);
  expect(observations().filter((status) => status === "Succeeded")).toHaveLength(1);
});

it("plays the later loops again and again, as if now", async () => {
  const recording = load("01-dev-success-3-artifacts-5-iterations");
  await using fake = await startFakeSkaffold({ recording, loop: { pauseMs: 1_000 } });
  const start = Date.now();
  await fake.playUntil({ v1: 35 + 2 * 24 });
  using client = connect(fake);
  const { got } = client.listen("v1");
  await until(() => expect(got).toHaveLength(35 + 2 * 24));
  const entries = got.map((bytes) => LogEntry.decode(bytes));
  const iterations = entries.flatMap(({ event }) =>
    event?.event_type?.$case === "devLoopEvent" ? [event.event_type.value.iteration] : [],
  );
  expect(iterations).toEqual(Array.from({ length: 13 }, (_, loop) => [loop, loop]).flat());
  const times = entries.map(({ timestamp: t }) => Number(t?.seconds) * 1_000 + (t?.nanos ?? 0) / 1e6);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(times.at(-1)).toBeGreaterThan(start - 1_000);

  // No recording has what the fake reports about itself, so there is nothing to compare with.
  const { response } = await client.call(services.v1.getState.path, Buffer.alloc(0));
  expect(StateV1.decode(response).deployState?.status).toBe("In Progress");
});
