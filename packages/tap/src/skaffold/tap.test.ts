import { spawn } from "node:child_process";
import { once } from "node:events";
import { basename } from "node:path";
import { setImmediate } from "node:timers/promises";
import { recordings } from "@tapedeck/fakes/recordings";
import { breakingAt } from "@tapedeck/fakes/skaffold/event-log";
import { loadRecording, type RecordedUpstream, recordingFolders } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { channels, type SkaffoldChannel, services } from "@tapedeck/shared/skaffold/methods";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { defaultDeadlineMs } from "@tapedeck/shared/testing/until";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parseAddress } from "../port-probe.ts";
import { listen } from "../testing/listen.ts";

const fixtures = recordings.skaffold;
const load = (name: string) => loadRecording(`${fixtures}/${name}`);
const long = "01-dev-success-3-artifacts-5-iterations";
const until = (check: () => void) => vi.waitFor(check, { timeout: defaultDeadlineMs, interval: 5 });
const bytesOf = (recording: RecordedUpstream, channel: SkaffoldChannel) =>
  recording.messages[channel].map(({ bytes }) => bytes);

/** Counts pieces of 10 ms in which this process got on: a machine that holds it up makes them fewer, never more. */
function ownTime() {
  let pieces = 0;
  const counting = setInterval(() => pieces++, 10);
  return { ms: () => pieces * 10, [Symbol.dispose]: () => clearInterval(counting) };
}

/** Blocks the event loop, as a machine that gives its processor to others. */
function holdUp(ms: number): void {
  for (const start = performance.now(); performance.now() - start < ms; );
}

/** With console output that makes a replay take a while. */
function talkative(recording: RecordedUpstream, lines: number): RecordedUpstream {
  const at = recording.messages.v1[0]?.at ?? 0;
  const v2 = Array.from({ length: lines }, (_, index) => {
    const value = { task_id: "", subtask_id: "", level: 7, message: `line ${index} ${"x".repeat(100)}\n` } as const;
    const timestamp = { seconds: BigInt(index), nanos: 0 };
    const event = Event.encode({ timestamp, event_type: { $case: "skaffoldLogEvent", value } });
    return { at, bytes: Buffer.from(event.finish()) };
  });
  return { ...recording, messages: { ...recording.messages, v2 } };
}

describe.concurrent("every recording arrives byte for byte, in order", () => {
  it.each(recordingFolders(fixtures).map((folder) => [basename(folder), folder]))("%s", async (_, folder) => {
    const recording = loadRecording(folder);
    await using fake = await startFakeSkaffold({ recording });
    // Half of it is replayed, half of it live.
    const half = (channel: SkaffoldChannel) => Math.floor(recording.messages[channel].length / 2);
    await fake.playUntil({ v1: half("v1"), v2: half("v2") });
    await using tapped = listen(fake.address);
    await until(() => expect(tapped.frames("v1")).toHaveLength(fake.played.v1));
    await until(() => expect(tapped.all("described").length).toBe(recording.generation === "A" ? 1 : 2));
    await fake.play();
    await until(() => {
      expect(tapped.frames("v1")).toHaveLength(recording.messages.v1.length);
      expect(tapped.frames("v2")).toHaveLength(recording.messages.v2.length);
    });
    expect(tapped.frames("v1")).toEqual(bytesOf(recording, "v1"));
    expect(tapped.frames("v2")).toEqual(bytesOf(recording, "v2"));
    // What was there before the last loop before the dial, Skaffold itself had forgotten.
    const logs = bytesOf(recording, "logs");
    await until(() => expect(tapped.frames("logs")).toEqual(logs.slice(logs.length - tapped.frames("logs").length)));
    expect(fake.peers.size).toBe(1);
    await until(() =>
      expect(channels.map((channel) => fake.health[channel].opened)).toEqual(
        recording.generation === "A" ? [1, 0, 0] : [1, 1, 1],
      ),
    );
  });
});

function all(recording: RecordedUpstream): number {
  return channels.reduce((sum, channel) => sum + recording.messages[channel].length, 0);
}

describe("a process", () => {
  const processA = load("07-two-processes-same-port/process-a");
  const processB = load("07-two-processes-same-port/process-b");

  it.each(["kill", "graceful"] as const)("that ends by %s is followed by the next one on the port", async (how) => {
    const first = await startFakeSkaffold({ recording: processA, port: await ownPort() });
    await using tapped = listen(first.address);
    await until(() => expect(first.health.logs.listeners).toBe(1));
    await first.play();
    await until(() => expect(tapped.all("frame")).toHaveLength(all(processA)));
    await first.end(how);
    await until(() => expect(tapped.all("closed")).toMatchObject([{ process_ended: true }]));
    await using second = await startFakeSkaffold({ recording: processB, port: first.port });
    using waited = ownTime();
    await until(() => expect(second.health.v1.listeners).toBe(1));
    // 100 ms are promised. gRPC's own waits begin with a second.
    expect(waited.ms()).toBeLessThan(800);
    await second.play();
    await until(() => expect(tapped.frames("v1")).toEqual([...bytesOf(processA, "v1"), ...bytesOf(processB, "v1")]));
    await until(() => expect(tapped.frames("v2")).toEqual([...bytesOf(processA, "v2"), ...bytesOf(processB, "v2")]));
    expect(new Set(tapped.items.map(({ connection }) => connection)).size).toBe(2);
    expect(
      tapped.items.map(({ what }) => what?.$case).filter((name) => name === "dialled" || name === "closed"),
    ).toEqual(["dialled", "closed", "dialled"]);
  });

  it("that is killed in mid-build is known to have ended, and its frames are kept", async () => {
    const main = new URL("../../../fakes/src/skaffold/main.ts", import.meta.url).pathname;
    const child = spawn(process.execPath, [
      main,
      "dev",
      "--recording",
      `${fixtures}/${long}`,
      "--loop",
      "--speed",
      "5",
    ]);
    onTestFinished(() => void child.kill("SIGKILL"));
    const [line] = await once(child.stdout, "data");
    await using tapped = listen(`127.0.0.1:${(JSON.parse(String(line)) as { port: number }).port}`);
    await until(() => expect(tapped.frames("v1").length).toBeGreaterThan(5));
    child.kill("SIGKILL");
    await until(() => expect(tapped.all("closed")).toMatchObject([{ process_ended: true }]));
    expect(tapped.items.at(-1)?.what?.$case).toBe("closed");
  });

  it("is not slowed by whoever takes what was tapped", async () => {
    const recording = talkative(processA, 20_000);
    await using fake = await startFakeSkaffold({ recording });
    await using tapped = listen(fake.address);
    await until(() => expect(fake.health.v2.listeners).toBe(1));
    // Nobody takes anything from `tapped` meanwhile.
    await fake.play();
    expect(fake.played).toMatchObject({ v1: 17, v2: 20_000 });
    await until(() => expect(tapped.frames("v2")).toHaveLength(20_000));
  });

  it("may say more than 4 MiB at once", async () => {
    const entry = Buffer.from(LogEntry.encode({ entry: "x".repeat(6 * 1024 * 1024), event: {} }).finish());
    const messages = { ...processA.messages, v1: [{ at: 0, bytes: entry }] };
    await using fake = await startFakeSkaffold({ recording: { ...processA, messages } });
    await using tapped = listen(fake.address);
    await fake.play();
    await until(() => expect(tapped.frames("v1")).toHaveLength(1));
    expect(tapped.frames("v1")[0]?.equals(entry)).toBe(true);
  });

  it("gives only the channels that are wanted", async () => {
    await using fake = await startFakeSkaffold({ recording: processA });
    await using tapped = listen(fake.address, ["logs", "v2"]);
    await until(() => expect(fake.health.v1.listeners).toBe(1));
    // The states are asked for when all channels have been opened.
    await until(() => expect(tapped.all("described")).toHaveLength(2));
    expect(tapped.all("dialled")).toMatchObject([{ channels: ["v1"] }]);
    expect(fake.health.v2.opened + fake.health.logs.opened).toBe(0);
  });
});

describe("a channel that a process can't give", () => {
  it("is not asked for again when text has broken it, but the next process is asked", async () => {
    const recording = load("17-invalid-utf8-in-build-output");
    await using fake = await startFakeSkaffold({ recording, port: await ownPort() });
    await using tapped = listen(fake.address);
    await until(() => expect(fake.health.logs.listeners).toBe(1));
    await fake.play();
    await until(() => expect(tapped.frames("v1")).toHaveLength(24));
    await until(() => expect(tapped.all("channel_ended")).toMatchObject([{ channel: "v2", code: 13, final: true }]));
    expect(tapped.all("channel_ended")[0]?.message).toContain("invalid UTF-8");
    expect([fake.health.v2.opened, fake.hung, fake.health.v2.doomed]).toEqual([1, [], false]);
    await fake.end("kill");
    await until(() => expect(tapped.all("closed")).toMatchObject([{ process_ended: true }]));
    await using next = await startFakeSkaffold({ recording, port: fake.port });
    await until(() => expect(next.health.v2.listeners).toBe(1));
  });

  it("is not asked for again however often the connection to that process is lost", async () => {
    await using fake = await startFakeSkaffold({ recording: load("17-invalid-utf8-in-build-output") });
    await using tunnel = await lossyProxy(fake.port);
    await using tapped = listen(`127.0.0.1:${tunnel.port}`);
    await until(() => expect(fake.health.logs.listeners).toBe(1));
    await fake.play();
    await until(() => expect(tapped.all("channel_ended")).toHaveLength(1));
    for (const count of [2, 3, 4]) {
      tunnel.cut();
      await until(() => expect(tapped.all("dialled")).toHaveLength(count));
      await until(() => expect(tapped.frames("v1")).toHaveLength(24 * count));
    }
    expect([fake.health.v1.opened, fake.health.v2.opened]).toEqual([4, 1]);
  });

  it("does not keep the tap from whoever has the port later, when it was not the only one", async () => {
    const first = await startFakeSkaffold({ recording: load("21-old-v0.40.0"), port: await ownPort() });
    await using tunnel = await lossyProxy(first.port);
    await using tapped = listen(`127.0.0.1:${tunnel.port}`, ["v1"]);
    await until(() => expect(tapped.all("channel_ended")).toHaveLength(2));
    tunnel.cut();
    await until(() => expect(tapped.all("dialled")).toHaveLength(2));
    await first.end("kill");
    await using next = await startFakeSkaffold({ recording: load(long), port: first.port });
    await until(() => expect(next.health.v2.listeners).toBe(1));
  });

  it("does not keep the tap from the next process, when no other channel is left", async () => {
    await using fake = await startFakeSkaffold({ recording: load(long) });
    await using tapped = listen(fake.address, channels);
    await until(() => expect(tapped.all("described")).toHaveLength(2));
    await fake.end("kill");
    await until(() => expect(tapped.all("closed")).toMatchObject([{ process_ended: true }]));
  });

  it("is reported once when the version lacks it", async () => {
    await using fake = await startFakeSkaffold({ recording: load("21-old-v0.40.0") });
    await using tapped = listen(fake.address);
    await until(() => expect(tapped.all("channel_ended")).toHaveLength(2));
    // Each stream ends by itself, so either can be the first.
    expect(tapped.all("channel_ended").toSorted((a, b) => (a.channel < b.channel ? -1 : 1))).toMatchObject([
      { channel: "logs", code: 12, final: true },
      { channel: "v2", code: 12, final: true },
    ]);
    expect(tapped.all("closed")).toEqual([]);
  });

  it("does not make it dial again, not even when it was the only one", async () => {
    await using fake = await startFakeSkaffold({ recording: load("21-old-v0.40.0"), port: await ownPort() });
    await using tapped = listen(fake.address, ["v1"]);
    await until(() => expect(tapped.all("channel_ended")).toHaveLength(2));
    await fake.end("kill");
    await until(() => expect(tapped.all("closed")).toMatchObject([{ process_ended: true }]));
    expect(tapped.all("dialled")).toHaveLength(1);
  });
});

describe("leaving", () => {
  const recording = talkative(load("15-hang-disconnect-during-replay"), 6_000);

  it("waits until the replay is through, and so hangs nobody", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v2: 5_000 });
    const tapped = listen(fake.address);
    await until(() => expect(tapped.frames("v2").length).toBeGreaterThan(100));
    expect(tapped.frames("v2").length).toBeLessThan(5_000);
    tapped.leave();
    await tapped.done;
    expect(tapped.frames("v2")).toHaveLength(5_000);
    await fake.play();
    expect(fake.played.v2).toBe(6_000);
    expect(fake.health.v2).toMatchObject({ doomed: false, hung: false });
    expect(tapped.items.at(-1)?.what).toMatchObject({ $case: "closed", value: { process_ended: false } });
    expect(tapped.all("channel_ended")).toEqual([]);
  });

  it("does not take it for quiet that it was held up itself", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v2: 5_000 });
    const tapped = listen(fake.address);
    await until(() => expect(tapped.frames("v2").length).toBeGreaterThan(100));
    tapped.leave();
    // The event loop is blocked as on a busy machine. After an immediate come timers, before anything is read.
    await setImmediate();
    holdUp(400);
    await tapped.done;
    expect(tapped.frames("v2")).toHaveLength(5_000);
  });

  it("does not take it for quiet either that it was held up before it leaves", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v2: 5_000 });
    const tapped = listen(fake.address);
    await until(() => expect(tapped.frames("v2").length).toBeGreaterThan(100));
    holdUp(400);
    tapped.leave();
    await tapped.done;
    expect(tapped.frames("v2")).toHaveLength(5_000);
  });

  it("does not take a replay for over because it is held up again and again", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v2: 5_000 });
    const tapped = listen(fake.address);
    await until(() => expect(tapped.frames("v2").length).toBeGreaterThan(100));
    // Each time for longer than what is taken for quiet, and together for longer than a busy stream is waited for.
    const start = performance.now();
    const holding = setInterval(() => {
      holdUp(400);
      if (performance.now() - start > 6_000) clearInterval(holding);
    }, 1);
    onTestFinished(() => clearInterval(holding));
    tapped.leave();
    await tapped.done;
    expect(tapped.frames("v2")).toHaveLength(5_000);
  });

  it("does not wait for ever for a process that is never quiet", async () => {
    const busy = load(long);
    await using fake = await startFakeSkaffold({ recording: busy, speed: 20, loop: { pauseMs: 0 } });
    const tapped = listen(fake.address);
    void fake.play();
    await until(() => expect(tapped.frames("v1").length).toBeGreaterThan(10));
    using waited = ownTime();
    tapped.leave();
    await tapped.done;
    // Five seconds are what it waits for quiet; half a minute is what a replay would be given.
    expect(waited.ms()).toBeLessThan(20_000);
    expect(fake.hung).toEqual([]);
  });

  it("ends the waiting for a process too", async () => {
    const tapped = listen("127.0.0.1:1");
    tapped.leave();
    await tapped.done;
    expect(tapped.items).toEqual([]);
  });
});

describe("GetState", () => {
  const recording = load(long);

  it("is asked at connect and after the end of a loop, but not for every loop of a replay", async () => {
    await using fake = await startFakeSkaffold({ recording });
    await using tapped = listen(fake.address);
    await until(() => expect(tapped.all("described")).toHaveLength(2));
    await fake.playUntil({ v1: 35, v2: 298 });
    await until(() => expect(tapped.all("described")).toHaveLength(4));
    const last = (api: string) => recording.states.findLast((state) => state.api === api)?.bytes;
    expect(tapped.all("described").slice(2)).toEqual([
      { channel: "v1", state: last("v1") },
      { channel: "v2", state: last("v2") },
    ]);
    expect(fake.stateRequests).toEqual({ v1: 2, v2: 2 });
    expect(fake.pings()).toBe(0);
  });

  it("is asked again when a stream has broken, though no loop ends after that", async () => {
    const broken = breakingAt(recording, 9);
    const messages = { ...broken.messages, v1: broken.messages.v1.slice(0, 3) };
    await using fake = await startFakeSkaffold({ recording: { ...broken, messages } });
    await using tapped = listen(fake.address);
    await until(() => expect(tapped.all("described")).toHaveLength(2));
    await fake.playUntil({ v1: 3, v2: 5 });
    // For the new runner.
    await until(() => expect(tapped.all("described")).toHaveLength(4));
    await fake.play();
    await until(() => expect(tapped.all("channel_ended")).toHaveLength(1));
    await until(() => expect(tapped.all("described")).toHaveLength(6));
  });
});

describe("control calls", () => {
  it("go to the process as they are, and its answer comes back", async () => {
    const recording = load("05-control-api-auto-off");
    await using fake = await startFakeSkaffold({ recording });
    await using tapped = listen(fake.address);
    await until(() => expect(fake.health.v1.listeners).toBe(1));
    for (const [index, { method, request, answer }] of recording.calls.entries()) {
      expect(await tapped.control({ call: `call-${index}`, method, request })).toEqual({
        call: `call-${index}`,
        ...answer,
      });
    }
    expect(fake.calls.map(({ method, request }) => ({ method, request }))).toEqual(
      recording.calls.map(({ method, request }) => ({ method, request })),
    );
    expect(fake.peers.size).toBe(1);
  });

  it("fail at once when there is no process, or no such method", async () => {
    await using away = listen("127.0.0.1:1");
    const execute = { call: "a", method: services.v1.execute.path, request: Buffer.alloc(0) };
    expect(await away.control(execute)).toMatchObject({ call: "a", code: 14 });
    await using fake = await startFakeSkaffold({ recording: load("14-config-error-wait-for-connection") });
    await using tapped = listen(fake.address);
    await until(() => expect(fake.health.v1.listeners).toBe(1));
    expect(await tapped.control({ ...execute, method: "/proto.SkaffoldService/Nope" })).toMatchObject({ code: 12 });
  });
});

it("takes addresses as people write them", () => {
  expect(parseAddress("localhost:50051")).toEqual({ host: "127.0.0.1", port: 50051 });
  expect(parseAddress("50051")).toEqual({ host: "127.0.0.1", port: 50051 });
  expect(parseAddress("10.0.0.7:1")).toEqual({ host: "10.0.0.7", port: 1 });
  expect(() => parseAddress("skaffold")).toThrow("not an address");
});
