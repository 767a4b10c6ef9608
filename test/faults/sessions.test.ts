import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffoldOptions, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { RecordingTimes } from "@tapedeck/ingest/record/recorder-options";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { ingestHarness, sentFrames } from "../harness/ingest-harness.ts";
import { skaffoldClient } from "../skaffold/client.ts";
import { startStack } from "../stack/stack.ts";
import { spillFolder } from "./processes.ts";
import { framesOf, holes, kindsOf, sessionsOf } from "./recorded-events.ts";
import { startServiceProcess } from "./service-process.ts";

const fixtures = recordings.skaffold;
const recordingOf = (folder: string) => loadRecording(join(fixtures, folder));

const events = "/proto.SkaffoldService/Events";
const getState = "/proto.SkaffoldService/GetState";

it("two successive processes on one port are two sessions", async () => {
  const [a, b] = [
    recordingOf("07-two-processes-same-port/process-a"),
    recordingOf("07-two-processes-same-port/process-b"),
  ];
  await using first = await startFakeSkaffold({ recording: a });
  await using stack = await startStack({ skaffold: [{ address: first.address, redact: "off" }] });
  using client = skaffoldClient(stack.grpc);
  await stack.connected();
  await first.play();
  await stack.recorded({ v1: a.messages.v1.length, v2: a.messages.v2.length });
  const [sessionA = ""] = sessionsOf(await stack.events());

  const ofTheFirst = client.all(events, { "tapedeck-session": sessionA });
  const ofBoth = client.take(events, a.messages.v1.length + b.messages.v1.length);
  const running = await client.unary(getState);
  expect(running.metadata.get("tapedeck-session-ended")).toEqual([]);
  await first.end("graceful");
  await stack.sessionEnded();
  // A stream that names the session ends with it, without an error.
  expect((await ofTheFirst).map((bytes) => bytes.toString("base64"))).toEqual(sentFrames(a, "v1"));
  const ended = await client.unary(getState);
  expect(ended).toMatchObject({ code: 0, bytes: running.bytes });
  expect(ended.metadata.get("tapedeck-session-ended")).toEqual(["true"]);
  expect(ended.metadata.get("tapedeck-session")).toEqual([sessionA]);

  await using second = await startFakeSkaffold({ recording: b, port: first.port });
  await second.play();
  await until(async () => sessionsOf(await stack.events()).length === 2, { message: "a second session" });
  await stack.recorded({ v1: b.messages.v1.length, v2: b.messages.v2.length });
  const recorded = await stack.events();
  const [, sessionB = ""] = sessionsOf(recorded);
  for (const channel of ["v1", "v2"] as const) {
    expect(framesOf(recorded, channel, sessionA)).toEqual(sentFrames(a, channel));
    expect(framesOf(recorded, channel, sessionB)).toEqual(sentFrames(b, channel));
  }
  expect(holes(recorded)).toEqual([]);
  // A reader that names no session continues into the second.
  expect((await ofBoth).map((bytes) => bytes.toString("base64"))).toEqual([
    ...sentFrames(a, "v1"),
    ...sentFrames(b, "v1"),
  ]);
  const now = await client.unary(getState);
  expect(now.metadata.get("tapedeck-session")).toEqual([sessionB]);
  expect(now.metadata.get("tapedeck-session-ended")).toEqual([]);
  const then = await client.unary(getState, undefined, { "tapedeck-session": sessionA });
  expect(then).toMatchObject({ code: 0, bytes: running.bytes });
  expect(then.metadata.get("tapedeck-session-ended")).toEqual(["true"]);
});

/** A repeat is sorted as a whole, however slowly a busy machine processes it. */
const sortedTogether = { silenceMs: 8_000, pieceMs: 600_000 };

it.each([
  { title: "in its own order", options: {}, times: {} },
  { title: "shuffled", options: { mixReplays: 1 }, times: { replay: sortedTogether } },
  { title: "shuffled otherwise", options: { mixReplays: 77 }, times: { replay: sortedTogether } },
])(
  "a process that is reconnected to and repeats itself $title adds nothing and stays one session",
  async ({ options, times }) => {
    const recording = recordingOf("05-control-api-auto-off");
    // Cut anywhere, also during a replay; that this could hang Skaffold is not the subject.
    await using wire = await skaffoldOnAWire({ recording, leavingInReplayHangs: false, ...options }, times);
    const { fake, stack } = wire;
    const rounds = 6;
    for (let round = 1; round <= rounds; round++) {
      const playing = fake.playUntil({ v1: Math.floor((recording.messages.v1.length * round) / rounds) });
      // Every other time in the middle of it.
      if (round % 2 === 0) await playing;
      const before = fake.peers.size;
      wire.cut();
      await until(() => fake.peers.size > before, { message: "the tap to come back" });
      await playing;
    }
    await fake.play();
    await stack.recorded({ v1: recording.messages.v1.length, v2: recording.messages.v2.length });
    const recorded = await stack.events();
    expect(framesOf(recorded, "v1")).toEqual(sentFrames(recording, "v1"));
    expect(framesOf(recorded, "v2")).toEqual(sentFrames(recording, "v2"));
    expect(holes(recorded)).toEqual([]);
    expect(sessionsOf(recorded)).toHaveLength(1);
    expect(kindsOf(recorded)).not.toContain("session.ended");
    expect(kindsOf(recorded).filter((kind) => kind === "upstream.connected").length).toBeGreaterThan(rounds);
  },
);

it("a v2 stream that broke is not opened again on the same process, which would hang", async () => {
  const recording = recordingOf("17-invalid-utf8-in-build-output");
  await using wire = await skaffoldOnAWire({ recording });
  const { fake, stack } = wire;
  await until(() => fake.peers.size === 1, { message: "the tap to dial" });
  const half = Math.floor(recording.messages.v1.length / 2);
  await fake.playUntil({ v1: half, v2: recording.messages.v2.length + 1 });
  await stack.recorded({ v1: fake.played.v1, v2: recording.messages.v2.length });
  await until(async () => kindsOf(await stack.events()).includes("upstream.lost"), { message: "v2 to break" });
  wire.cut();
  await until(() => fake.peers.size === 2, { message: "the tap to come back" });
  await fake.play();
  await stack.recorded({ v1: recording.messages.v1.length, v2: recording.messages.v2.length });
  expect(fake.health.v2.opened).toBe(1);
  expect(fake.hung).toEqual([]);
  const recorded = await stack.events();
  expect(framesOf(recorded, "v1")).toEqual(sentFrames(recording, "v1"));
  expect(framesOf(recorded, "v2")).toEqual(sentFrames(recording, "v2"));
  expect(holes(recorded)).toEqual([]);
  expect(sessionsOf(recorded)).toHaveLength(1);
  using client = skaffoldClient(stack.grpc);
  const received = await client.take("/proto.v2.SkaffoldV2Service/Events", recording.messages.v2.length);
  expect(received.map((bytes) => bytes.toString("base64"))).toEqual(sentFrames(recording, "v2"));
});

it("a v2 stream that broke is not opened again after ingest was killed and restarted either", async () => {
  await using harness = await ingestHarness("17-invalid-utf8-in-build-output");
  const { recording, fake, events: recordedEvents } = harness;
  await using ingest = await harness.ingest();
  await until(() => fake.health.v2.listeners === 1, { message: "the tap to listen" });
  const half = Math.floor(recording.messages.v1.length / 2);
  await fake.playUntil({ v1: half, v2: recording.messages.v2.length + 1 });
  await until(async () => kindsOf(await recordedEvents()).includes("upstream.lost"), { message: "v2 to break" });
  const returns = async () => kindsOf(await recordedEvents()).filter((kind) => kind === "upstream.restored").length;
  for (const times of [1, 2]) {
    await ingest.kill();
    await ingest.start();
    await until(async () => (await returns()) === times, { message: "the tap to be back, and the repeat to be over" });
  }
  void fake.play();
  const all = recording.messages.v1.length;
  await until(async () => framesOf(await recordedEvents(), "v1").length === all, { message: "v1 to go on" });
  expect([fake.hung, fake.health.v2.opened, fake.health.v1.opened]).toEqual([[], 1, 3]);
  const recorded = await recordedEvents();
  expect(framesOf(recorded, "v1")).toEqual(sentFrames(recording, "v1"));
  expect(framesOf(recorded, "v2")).toEqual(sentFrames(recording, "v2"));
  expect(holes(recorded)).toEqual([]);
  expect(sessionsOf(recorded)).toHaveLength(1);
});

it("a process that ends while ingest is away is recorded as ended once, as soon as ingest is back", async () => {
  const [a, b] = [
    recordingOf("07-two-processes-same-port/process-a"),
    recordingOf("07-two-processes-same-port/process-b"),
  ];
  await using stack = await startStack({ skaffold: [] });
  await using first = await startFakeSkaffold({ recording: a });
  const source = { developer: "alice", project: "shop", address: first.address, redact: "off" };
  await using ingest = await startServiceProcess("ingest", {
    TAPEDECK_NATS_URL: stack.parts.nats.url,
    TAPEDECK_SOURCES: JSON.stringify([source]),
    TAPEDECK_INGEST_SPILL_DIR: await spillFolder(),
  });
  const status = async () => {
    await stack.caughtUp();
    const { body } = await stack.httpCall("GET", "/api/v1/sources");
    return (JSON.parse(body) as { items: { status: string }[] }).items.map((item) => item.status);
  };
  await first.play();
  await stack.recorded({ v1: a.messages.v1.length, v2: a.messages.v2.length });
  await ingest.kill();
  await first.end("kill");
  expect(await status()).toEqual(["recording"]);

  await ingest.start();
  await stack.sessionEnded();
  expect(await status()).toEqual(["waiting"]);
  const [end] = (await stack.events()).flatMap(({ event }) => (event.kind === "session.ended" ? [event] : []));
  expect(end?.detail).toMatchObject({ value: { reason: "process ended while no tap was recording" } });
  const lastFrame = (await stack.events()).findLast(({ event }) => event.channel === "v1" || event.channel === "v2");
  expect(end?.not_before?.seconds).toBeGreaterThanOrEqual(lastFrame?.event.observed_at?.seconds ?? 0n);
  expect(end?.occurred_at?.seconds).toBeGreaterThanOrEqual(end?.not_before?.seconds ?? 0n);

  await ingest.kill();
  await ingest.start();
  await using second = await startFakeSkaffold({ recording: b, port: first.port });
  await second.play();
  await until(async () => sessionsOf(await stack.events()).length === 2, { message: "a second session" });
  await stack.recorded({ v1: b.messages.v1.length, v2: b.messages.v2.length });
  expect(await status()).toEqual(["recording"]);
  const recorded = await stack.events();
  const [sessionA = "", sessionB = ""] = sessionsOf(recorded);
  for (const channel of ["v1", "v2"] as const) {
    expect(framesOf(recorded, channel, sessionA)).toEqual(sentFrames(a, channel));
    expect(framesOf(recorded, channel, sessionB)).toEqual(sentFrames(b, channel));
  }
  expect(holes(recorded)).toEqual([]);
  const ends = kindsOf(recorded).filter((kind) => kind === "session.ended" || kind === "upstream.lost");
  expect(ends).toEqual(["upstream.lost", "session.ended"]);
});

/** Starts a Skaffold whose connections can be cut while it runs. */
async function skaffoldOnAWire(options: FakeSkaffoldOptions, times: RecordingTimes = {}) {
  await using cleanup = new AsyncDisposableStack();
  const fake = cleanup.use(await startFakeSkaffold(options));
  const wire = cleanup.use(await lossyProxy(fake.port));
  const skaffold = [{ address: `127.0.0.1:${wire.port}`, redact: "off" }] as const;
  const stack = cleanup.use(await startStack({ skaffold, times }));
  await until(() => fake.health.v1.opened > 0, { message: "the tap to listen" });
  const owned = cleanup.move();
  return { fake, stack, cut: () => wire.cut(), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
