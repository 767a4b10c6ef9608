import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { PodState, PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it, onTestFinished } from "vitest";
import { recordings } from "../recordings.ts";
import { connectTo } from "./client.ts";
import { largeHost } from "./host.ts";
import { loadRecording, pollRows, type RecordedUnary } from "./recording.ts";
import { startFakeRkt } from "./server.ts";

const fixtures = `${recordings.rkt}/`;
const load = (name: string) => loadRecording(`${fixtures}${name}`);
const empty = Buffer.alloc(0);

const { listPods, inspectPod } = PublicAPIService;

describe("timed", () => {
  const recording = load("01-full-lifecycle");
  const polls = pollRows(recording, "pods");
  const [from = 0, to = 0] = [polls[0]?.at, polls.at(-1)?.at];
  const podsOf = ({ response = empty }: RecordedUnary) => listPods.responseDeserialize(response).pods;
  const running = polls.find((row) => podsOf(row).some(({ state }) => state === PodState.POD_STATE_RUNNING));

  it("answers what is in force now, as if it happened now, and starts again with other pods", async () => {
    const start = Date.parse("2030-01-01T00:00:00Z");
    let now = start;
    await using fake = await startFakeRkt({ recording, timed: { now: () => now, pauseMs: 1_000 }, speed: 2 });
    using client = connectTo(fake);
    expect(await client.pods()).toEqual([]);

    const at = (running?.at ?? 0) - from + 100;
    now = start + at / 2;
    const [pod] = await client.pods(true);
    const [recorded] = running === undefined ? [] : podsOf(running);
    expect(pod?.state).toBe(PodState.POD_STATE_RUNNING);
    expect(pod?.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(pod?.id).not.toBe(recorded?.id);
    expect(pod?.cgroup).toContain(pod?.id.replaceAll("-", "\\x2d"));
    const createdAt = Number(pod?.created_at) / 1e6;
    expect(createdAt).toBeCloseTo(start + (Number(recorded?.created_at) / 1e6 - from) / 2, 0);
    expect(Number(pod?.started_at)).toBeGreaterThan(Number(pod?.created_at));
    expect(pod?.gc_marked_at).toBe(0n);
    expect(await client.pods(true)).toEqual([pod]);
    expect((await client.call(inspectPod, { id: pod?.id.slice(0, 8) ?? "" })).pod).toEqual(pod);
    for (const { import_timestamp } of await client.images()) {
      expect(Number(import_timestamp)).toBeGreaterThanOrEqual(start / 1_000 - 1);
      expect(Number(import_timestamp)).toBeLessThanOrEqual(now / 1_000);
    }

    // The next turn begins a second (of recorded time) after the last poll's end.
    const images = pollRows(recording, "images").at(-1);
    const turn = (images?.at ?? 0) + (images?.tookMs ?? 0) - from + 1_000;
    expect(turn).toBeGreaterThanOrEqual(to - from + 1_000);
    now = start + (turn + at) / 2;
    const [again] = await client.pods();
    expect(again?.id).not.toBe(pod?.id);
    expect(Number(again?.created_at) / 1e6 - createdAt).toBeCloseTo(turn / 2, 0);
  });

  it("stands still while it is paused, and pods keep their times", async () => {
    const start = Date.parse("2030-01-01T00:00:00Z");
    let now = start + 0;
    await using fake = await startFakeRkt({ recording, timed: { now: () => now } });
    using client = connectTo(fake);
    now += (running?.at ?? 0) - from + 100;
    const before = await client.pods();
    fake.pause();
    now += 3_600_000;
    expect(await client.pods()).toEqual(before);
    fake.resume();
    expect(await client.pods()).toEqual(before);

    const marked = polls.find((row) => podsOf(row).some(({ gc_marked_at }) => gc_marked_at > 0n));
    now += (marked?.at ?? 0) - (running?.at ?? 0);
    const [pod] = await client.pods();
    expect(pod?.started_at).toBe(before[0]?.started_at);
    expect(Number((pod?.gc_marked_at ?? 0n) - (pod?.started_at ?? 0n))).toBeGreaterThan(3_600e9);
    expect(Number(pod?.gc_marked_at) / 1e6).toBeLessThanOrEqual(now);
    now += to - (marked?.at ?? 0);
    expect(await client.pods()).toEqual([]);
  });

  it("sorts pods by the ids that they have now", async () => {
    await using fake = await startFakeRkt({ recording: largeHost({ pods: 20 }), timed: {} });
    using client = connectTo(fake);
    const ids = (await client.pods()).map(({ id }) => id);
    expect(ids).toHaveLength(20);
    expect(ids).toEqual(ids.toSorted());
  });

  it("waits as long as the real one did, and never for a deadline that was the client's", async () => {
    const blocking = load("10-blocking-start");
    const slow = pollRows(blocking, "pods").find(({ error }) => error?.code === 4);
    const start = Date.now();
    let now = start;
    const begin = Math.min(...[...pollRows(blocking, "pods"), ...pollRows(blocking, "images")].map(({ at }) => at));
    await using fake = await startFakeRkt({ recording: blocking, timed: { now: () => now }, speed: 1_000 });
    using client = connectTo(fake);
    now = start + ((slow?.at ?? 0) + 1 - begin) / 1_000;
    const waiting = client.pods();
    await until(() => fake.calls.ListPods.inFlight === 1, { message: "the call" });
    now = start + 2_430 / 1_000;
    expect(await waiting).toHaveLength(2);
  });
});

it("as a process of its own says its port, plays, and ends as the real one does", async () => {
  const main = new URL("main.ts", import.meta.url).pathname;
  const args = [main, "--recording", `${fixtures}01-full-lifecycle`, "--listen", "127.0.0.1:0", "--speed", "100"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = once(child, "exit");
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  using client = connectTo({ address: `127.0.0.1:${(JSON.parse(line) as { port: number }).port}` });
  const seen = new Set<string>();
  await until(
    async () => {
      for (const { id } of await client.pods()) seen.add(id);
      return seen.size > 1;
    },
    { message: "a second turn" },
  );
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});
