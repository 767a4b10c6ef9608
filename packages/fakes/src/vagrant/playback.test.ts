import { fromBinary, type JsonValue, toJson } from "@bufbuild/protobuf";
import { GetJobStreamRequest, GetJobStreamResponse, Job_State, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { recordings } from "../recordings.ts";
import { connectTo } from "./client.ts";
import { loadRecording } from "./recording.ts";
import { startFakeVagrant } from "./server.ts";

const samples = `${recordings.vagrant}/samples/`;
const load = (name: string) => loadRecording(`${samples}${name}.jsonl`);
const upJob = "01M7WSXR6NFM73VJ0F879K4ZNP";

function json(rpc: string, bytes: Buffer): JsonValue {
  const method = registry.getService("hashicorp.vagrant.Vagrant")?.methods.find(({ name }) => name === rpc);
  const type = messageType(method?.output.typeName ?? "");
  return toJson(type, fromBinary(type, bytes), { registry });
}

describe.each(["up", "up-shipped-cli"])("%s is played, and observed as it was", (name) => {
  const recording = load(name);

  it("has the recorded answers", async () => {
    await using fake = await startFakeVagrant();
    using client = connectTo(fake);
    const playback = fake.playSample(recording);
    let compared = 0;
    for (const row of recording.rows) {
      playback.to(row.n);
      if (row.kind !== "unary" || row.actor !== "recorder") continue;
      const { code, bytes } = await client.raw(row.rpc, row.request);
      expect(code).toBe(0);
      expect(json(row.rpc, bytes), `row ${row.n}`).toEqual(json(row.rpc, row.response ?? Buffer.alloc(0)));
      compared++;
    }
    expect(compared).toBeGreaterThan(15);
    expect(playback.done()).toBe(playback.steps.length);
  });

  it("answers its client and runner as they were answered", async () => {
    await using fake = await startFakeVagrant();
    const playback = fake.playSample(recording);
    playback.all();
    for (const row of recording.rows) {
      if (row.kind !== "unary" || row.actor === "recorder" || row.rpc === "GetVersionInfo") continue;
      const answer = playback.answer(row.n);
      const expected = row.response && json(row.rpc, row.response);
      expect(answer && json(row.rpc, answer), `row ${row.n}`).toEqual(expected);
    }
  });

  it("streams the same messages, to early and late listeners", async () => {
    await using fake = await startFakeVagrant();
    using client = connectTo(fake);
    const playback = fake.playSample(recording);
    const streams = new Map<string, ReturnType<typeof client.follow>>();
    for (const row of recording.rows) {
      playback.to(row.n - 1);
      if (row.kind === "stream-open" && row.rpc === "GetJobStream") {
        const opened = client.follow(GetJobStreamRequest.decode(row.request).job_id);
        streams.set(row.stream, opened);
        await until(() => opened.messages.length >= 2, { message: `the start of ${row.stream}` });
      }
      playback.to(row.n);
    }
    expect([...streams.keys()]).toEqual(["init-live", "up-live", "up-late", "up-reopen"]);
    for (const [stream, { messages, end }] of streams) {
      expect(await end).toMatchObject({ code: 0 });
      const rows = recording.rows.flatMap((row) =>
        row.kind === "stream-message" && row.stream === stream ? [row] : [],
      );
      const bytes = messages.map((message) => Buffer.from(GetJobStreamResponse.encode(message).finish()));
      expect(bytes.map((each) => json("GetJobStream", each))).toEqual(
        rows.map(({ message }) => json("GetJobStream", message)),
      );
    }
  });
});

it("goes step by step, and says where it is", async () => {
  await using fake = await startFakeVagrant();
  using client = connectTo(fake);
  const playback = fake.playSample(load("up"));
  expect(await client.jobs()).toEqual([]);
  playback.to(33);
  expect((await client.job(upJob)).state).toBe(Job_State.WAITING);
  expect(playback.next()).toMatchObject({ n: 34, kind: "ack" });
  expect((await client.job(upJob)).state).toBe(Job_State.RUNNING);
  const before = playback.done();
  playback.all();
  expect(playback.done()).toBeGreaterThan(before);
  expect(playback.next()).toBeUndefined();
  expect((await client.job(upJob)).result?.run?.run_result).toBe(false);
});

it("runs by itself, waits where it is held, and ends with the signal", async () => {
  await using fake = await startFakeVagrant();
  using client = connectTo(fake);
  const playback = fake.playSample(load("up"));
  const release = playback.hold(34);
  const done = playback.run({ speed: "max" });
  await until(() => playback.steps[playback.done()]?.n === 34, { message: "the held step" });
  const held = playback.done();
  expect((await client.jobs())[1]?.state).toBe(Job_State.WAITING);
  const other = playback.hold(60);
  release();
  await until(() => playback.steps[playback.done()]?.n === 61, { message: "the other held step" });
  other();
  await done;
  expect(playback.done()).toBe(playback.steps.length);

  const leaving = new AbortController();
  await using second = await startFakeVagrant();
  const stopped = second.playSample(load("up"));
  stopped.hold(34);
  const ended = stopped.run({ speed: "max", signal: leaving.signal });
  await until(() => stopped.done() === held, { message: "the held step" });
  leaving.abort();
  await ended;
  expect(stopped.done()).toBe(held);
});

it("can happen now, with ids and times of its own, again and again", async () => {
  const start = Date.parse("2030-01-01T00:00:00Z");
  await using fake = await startFakeVagrant({ now: () => start });
  using client = connectTo(fake);
  const { steps } = fake.playSample(load("up"));
  for (const names of [new Map<string, string>(), new Map<string, string>()]) {
    names.set("01M7WSXQZS1K6ZCYSAATXY98MQ", fake.newId());
    fake.playAsNow(steps, names).all();
  }
  const jobs = await client.jobs();
  expect(jobs).toHaveLength(4);
  expect(new Set(jobs.map(({ target_runner }) => JSON.stringify(target_runner)))).toHaveProperty("size", 2);
  expect(jobs.every(({ state }) => state === Job_State.SUCCESS)).toBe(true);
  expect(jobs.some(({ id }) => id === upJob)).toBe(false);
  expect(jobs.every(({ queue_time }) => queue_time?.seconds === BigInt(start / 1_000))).toBe(true);
  const { targets } = await client.call(VagrantService.listTargets, {});
  expect(targets.map(({ name }) => name)).toEqual(["web1", "web2"]);
  const { projects } = await client.call(VagrantService.listProjects, {});
  expect(projects).toHaveLength(1);
  expect(jobs[0]?.scope?.value.resource_id).toBe(projects[0]?.resource_id);
});
