import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { defaultDeadlineMs } from "@tapedeck/shared/testing/until";
import { describe, expect, it, vi } from "vitest";
import type { TapMemory } from "../tap.ts";
import { listen, testMemory } from "../testing/listen.ts";

const load = (name: string) => loadRecording(`${recordings.skaffold}/${name}`);
const until = (check: () => void) => vi.waitFor(check, { timeout: defaultDeadlineMs, interval: 5 });
const bytesOf = (recording: RecordedUpstream, channel: SkaffoldChannel) =>
  recording.messages[channel].map(({ bytes }) => bytes);

describe("a tap that comes after another one", () => {
  const utf8 = load("17-invalid-utf8-in-build-output");
  const later = load("20-old-v1.39.18");

  /** Hears a process until v2 has broken, and leaves. */
  async function hearItBreak(address: string, memory: TapMemory, play: () => Promise<void>) {
    await using before = listen(address, [], memory);
    await until(() => expect(before.all("described")).toHaveLength(2));
    await play();
    await until(() => expect(before.all("channel_ended")).toMatchObject([{ channel: "v2", code: 13 }]));
  }

  it("does not ask the same process for what broke, whatever it repeats first", async () => {
    await using fake = await startFakeSkaffold({ recording: utf8, mixReplays: 53 });
    const memory = testMemory();
    await hearItBreak(fake.address, memory, () => fake.playUntil({ v1: 15, v2: 79 }));
    expect(memory.load()?.broken).toEqual({
      channels: ["v2"],
      heard: { channel: "v1", at: expect.toSatisfy((at: number) => at > 1_795_190_000_000) },
    });
    await fake.playUntil({ v1: 20 });
    await using after = listen(fake.address, [], memory);
    await until(() => expect(after.frames("v1")).toHaveLength(20));
    // Said after the break.
    expect(after.frames("v1")[0]).toEqual(bytesOf(utf8, "v1")[17]);
    expect(after.all("dialled")).toMatchObject([{ channels: ["v1", "logs"] }]);
    await fake.play();
    await until(() => expect(after.frames("v1")).toHaveLength(24));
    expect([fake.health.v2.opened, fake.hung, fake.peers.size]).toEqual([1, [], 2]);
    expect(memory.load()?.broken?.channels).toEqual(["v2"]);
  });

  it("knows the process again by the channel that has not broken", async () => {
    const { v1, v2 } = utf8.messages;
    const ends = { v1: { at: v1[9]?.at ?? 0, code: 13, message: "invalid UTF-8" } };
    const recording = { ...utf8, messages: { v1: v1.slice(0, 9), v2: v2.slice(0, 20), logs: [] }, ends };
    await using fake = await startFakeSkaffold({ recording });
    const memory = testMemory();
    await using tapped = listen(fake.address, [], memory);
    await fake.playUntil({ v1: 5, v2: 1 });
    await until(() => expect(tapped.frames("v2").length).toBeGreaterThan(0));
    await fake.play();
    await until(() => expect(tapped.all("channel_ended")).toMatchObject([{ channel: "v1", code: 13 }]));
    expect(memory.load()?.broken).toMatchObject({ channels: ["v1"], heard: { channel: "v2" } });
  });

  it("asks another process for all, on the same connection", async () => {
    const memory = testMemory();
    const first = await startFakeSkaffold({ recording: utf8, port: await ownPort() });
    await hearItBreak(first.address, memory, first.play);
    await first.end("kill");
    await using second = await startFakeSkaffold({ recording: later, port: first.port });
    await second.playUntil({ v1: 20 });
    await using after = listen(first.address, [], memory);
    await until(() => expect(second.health.v2.listeners).toBe(1));
    expect(memory.load()?.broken).toBeUndefined();
    await second.play();
    await until(() => expect(after.frames("v2")).toEqual(bytesOf(later, "v2")));
    expect([after.all("dialled").length, second.peers.size, second.health.v1.opened]).toEqual([1, 1, 1]);
  });

  it("asks at once when it has seen the port closed", async () => {
    const memory = testMemory();
    const first = await startFakeSkaffold({ recording: utf8, port: await ownPort() });
    await hearItBreak(first.address, memory, first.play);
    await first.end("kill");
    await using after = listen(first.address, [], memory);
    await until(() => expect(after.all("closed")).toHaveLength(1));
    expect(memory.load()?.broken).toBeUndefined();
    await using second = await startFakeSkaffold({ recording: later, port: first.port });
    await until(() => expect(second.health.v2.opened).toBe(1));
    expect(after.all("dialled")).toMatchObject([{ channels: ["v1", "v2", "logs"] }]);
  });

  it("stays in doubt about a process that says nothing, or that can't be known again", async () => {
    const memory = testMemory();
    await using fake = await startFakeSkaffold({ recording: later });
    const received = { channel: "v1", at: 1_795_190_000_000 };
    for (const broken of [
      { channels: ["v2"] },
      { channels: ["v1", "v2"], heard: received },
      { channels: ["v2"], heard: received },
    ]) {
      memory.save({ address: fake.address, connection: "C1", broken });
      await using tapped = listen(fake.address, [], memory);
      await until(() => expect(tapped.all("described")).toHaveLength(2));
      expect(fake.health.v2.opened).toBe(0);
    }
  });

  it("reports that the process has gone while nobody listened, if it was the one at this address", async () => {
    const memory = testMemory();
    const fake = await startFakeSkaffold({ recording: utf8, port: await ownPort() });
    {
      await using before = listen(fake.address, [], memory);
      await until(() => expect(before.all("dialled")).toHaveLength(1));
      expect(memory.load()).toEqual({ address: fake.address, connection: before.items[0]?.connection });
    }
    await fake.end("kill");
    const connection = memory.load()?.connection;
    for (let start = 0; start < 2; start++) {
      await using after = listen(fake.address, [], memory);
      await until(() => expect(after.items).toHaveLength(1));
      expect(after.items[0]).toMatchObject({ connection, what: { value: { process_ended: true, unseen: true } } });
    }
    await using elsewhere = listen("127.0.0.1:1", [], memory);
    await using next = await startFakeSkaffold({ recording: later });
    await using moved = listen(next.address, [], memory);
    await until(() => expect(moved.all("described")).toHaveLength(2));
    expect([elsewhere.items, moved.all("closed")]).toEqual([[], []]);
  });
});
