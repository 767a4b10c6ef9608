import { status } from "@grpc/grpc-js";
import { Job_State, type GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { connectTo, line } from "../client.ts";
import { startFakeVagrant } from "../server.ts";
import { commandResult, setUpShop } from "../shop.ts";
import { windowSize } from "./output.ts";

const { UNKNOWN, QUEUED, WAITING, RUNNING, SUCCESS, ERROR } = Job_State;

async function shop() {
  const fake = await startFakeVagrant();
  const client = connectTo(fake);
  const ids = setUpShop(fake);

  /** A stream that has said `open` and its first state. */
  async function follow(id: string) {
    const stream = client.follow(id);
    await until(() => stream.messages.length >= 2, { message: "the start of a stream" });
    return stream;
  }

  /** Writes so many lines, as fast as everybody reads. */
  async function write(id: string, from: number, to: number): Promise<void> {
    for (let n = from; n < to; n += 500) {
      fake.jobs.write(id, lines(n, Math.min(to, n + 500)));
      await until(() => fake.fullStreams() === 0, { message: "readers to read" });
    }
  }

  return {
    ...ids,
    fake,
    client,
    jobs: fake.jobs,
    follow,
    write,
    [Symbol.asyncDispose]: async () => {
      client[Symbol.dispose]();
      await fake[Symbol.asyncDispose]();
    },
  };
}

/** "0", "1" … of which `to` is not one any more. */
function lines(from: number, to: number): TerminalEvent[] {
  return Array.from({ length: to - from }, (_, index) => line(String(from + index)));
}
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index));

describe("states", () => {
  it("are sent one after the other, each with the one before, and then the end", async () => {
    await using it = await shop();
    const id = it.queue();
    const stream = await it.follow(id);
    it.jobs.assign(id);
    it.jobs.ack(id);
    it.jobs.complete(id, commandResult({ run_result: true }));
    expect(await stream.end).toMatchObject({ code: 0 });
    expect(stream.cases()).toEqual(["open", "state", "state", "state", "state", "complete"]);
    expect(stream.steps()).toEqual([
      [UNKNOWN, QUEUED],
      [QUEUED, WAITING],
      [WAITING, RUNNING],
      [RUNNING, SUCCESS],
    ]);
    expect(stream.states().at(-1)?.job).toEqual(await it.client.job(id));
    expect(stream.messages.at(-1)?.event?.value).toMatchObject({ result: { run: { run_result: true } } });
    expect(it.fake.streams()).toBe(0);
  });

  it("send a cancel as one more state that is the same", async () => {
    await using it = await shop();
    const id = it.run();
    const stream = await it.follow(id);
    it.jobs.cancel(id);
    it.jobs.cancel(id);
    it.jobs.fail(id, { code: 2, message: "context canceled", details: [] });
    await stream.end;
    expect(stream.states().map(({ previous, current, canceling }) => [previous, current, canceling])).toEqual([
      [UNKNOWN, RUNNING, false],
      [RUNNING, RUNNING, true],
      [RUNNING, ERROR, true],
    ]);
    expect(stream.messages.at(-1)?.event?.value).toMatchObject({ error: { code: 2 }, result: undefined });
  });

  it("that were over before the stream could send them are skipped", async () => {
    await using it = await shop();
    const id = it.queue();
    const stream = await it.follow(id);
    const release = it.fake.holdStreams("states");
    it.jobs.assign(id);
    it.jobs.ack(id);
    release();
    const again = it.fake.holdStreams("states");
    it.jobs.complete(id);
    again();
    await stream.end;
    expect(stream.steps()).toEqual([
      [UNKNOWN, QUEUED],
      [QUEUED, RUNNING],
      [RUNNING, SUCCESS],
    ]);
  });

  it("of no job there is: NOT_FOUND without a message", async () => {
    await using it = await shop();
    const stream = it.client.follow("nobody");
    expect(await stream.end).toMatchObject({ code: status.NOT_FOUND, details: "job not found" });
    expect(stream.messages).toEqual([]);
  });

  it("of a job whose row is deleted end with NOT_FOUND", async () => {
    await using it = await shop();
    const ids = Array.from({ length: 51 }, () => it.queue()).toSorted();
    const stream = await it.follow(ids[50] ?? "");
    const kept = await it.follow(ids[0] ?? "");
    it.fake.call("PruneOldJobs", Buffer.alloc(0));
    it.fake.holdStreams("output")();
    expect(await stream.end).toMatchObject({ code: status.NOT_FOUND });
    it.jobs.assign(ids[0] ?? "");
    await until(() => kept.messages.length === 3, { message: "a state of another job" });
  });
});

describe("output", () => {
  it("is live for a stream that saw its beginning, and buffered for a later one, never mixed, at most 64 at once", async () => {
    await using it = await shop();
    const id = it.run();
    const early = await it.follow(id);
    it.jobs.write(id, lines(0, 100));
    const late = await it.follow(id);
    await until(() => late.texts().length === 100, { message: "the replay" });
    it.jobs.write(id, lines(100, 170));
    it.jobs.complete(id);
    for (const stream of [early, late]) {
      expect(await stream.end).toMatchObject({ code: 0 });
      expect(stream.texts()).toEqual(numbers(0, 170));
    }
    const sizes = (stream: typeof early) => stream.terminals().map(({ events, buffered }) => [events.length, buffered]);
    expect(sizes(early)).toEqual([
      [64, false],
      [36, false],
      [64, false],
      [6, false],
    ]);
    expect(sizes(late)).toEqual([
      [64, true],
      [36, true],
      [64, false],
      [6, false],
    ]);
    expect(late.cases().slice(0, 3)).toEqual(["open", "state", "terminal"]);
  });

  it("of a finished job is replayed whole, as often as one likes", async () => {
    await using it = await shop();
    const id = it.run();
    it.jobs.write(id, lines(0, 70));
    it.jobs.complete(id);
    for (let count = 0; count < 2; count++) {
      const stream = it.client.follow(id);
      await stream.end;
      expect(stream.cases()).toEqual(["open", "state", "terminal", "terminal", "complete"]);
      expect(stream.steps()).toEqual([[UNKNOWN, SUCCESS]]);
      expect(stream.terminals().every(({ buffered }) => buffered)).toBe(true);
      expect(stream.texts()).toEqual(numbers(0, 70));
    }
  });

  it("of a job that wrote none is no message at all", async () => {
    await using it = await shop();
    const id = it.run();
    it.jobs.complete(id);
    const stream = it.client.follow(id);
    await stream.end;
    expect(stream.cases()).toEqual(["open", "state", "complete"]);
  });

  it("can be buffered for a stream that was there before the job ran", async () => {
    await using it = await shop();
    const id = it.queue();
    const stream = await it.follow(id);
    const release = it.fake.holdStreams("output");
    it.jobs.assign(id);
    it.jobs.ack(id);
    it.jobs.write(id, lines(0, 3));
    release();
    it.jobs.write(id, lines(3, 5));
    await until(() => stream.texts().length === 5, { message: "five lines" });
    expect(stream.terminals().map(({ events, buffered }) => [events.length, buffered])).toEqual([
      [3, true],
      [2, false],
    ]);
  });

  it("can come before the state RUNNING", async () => {
    await using it = await shop();
    const id = it.queue();
    it.jobs.assign(id);
    const stream = await it.follow(id);
    const release = it.fake.holdStreams("states");
    it.jobs.ack(id);
    it.jobs.write(id, lines(0, 1));
    release();
    await until(() => stream.messages.length === 4, { message: "the state after it" });
    expect(stream.cases()).toEqual(["open", "state", "terminal", "state"]);
    expect(stream.steps().at(-1)).toEqual([WAITING, RUNNING]);
  });

  it("that was not sent when the job ended is cut, and sent to a caller who asks again", async () => {
    await using it = await shop();
    const id = it.run();
    const stream = await it.follow(id);
    it.jobs.write(id, lines(0, 2));
    const release = it.fake.holdStreams("output");
    it.jobs.write(id, lines(2, 200));
    it.jobs.complete(id);
    release();
    await stream.end;
    expect(stream.texts()).toEqual(numbers(0, 2));
    expect(stream.cases()).toEqual(["open", "state", "terminal", "state", "complete"]);
    const again = it.client.follow(id);
    await again.end;
    expect(again.texts()).toEqual(numbers(0, 200));
  });

  it("is cut for a reader that is slow, and for no other", async () => {
    await using it = await shop();
    const id = it.run();
    const slow = await it.follow(id);
    using other = connectTo(it.fake);
    const fast = other.follow(id);
    await until(() => fast.messages.length === 2, { message: "the start of the fast one" });
    slow.pause();
    // More than its client reads ahead: 16 messages and what is under way.
    const large = 60;
    for (let n = 0; n < large; n++) {
      it.jobs.write(id, [line(`${n} ${"x".repeat(200_000)}`)]);
      await until(() => fast.texts().length === n + 1, { message: "the fast one" });
    }
    await until(() => it.fake.fullStreams() === 1, { message: "the slow one's connection to be full" });
    it.jobs.write(id, lines(0, 10));
    it.jobs.complete(id);
    slow.resume();
    await Promise.all([slow.end, fast.end]);
    expect(fast.texts()).toHaveLength(large + 10);
    expect(slow.texts().length).toBeLessThan(large);
    expect(slow.cases().slice(-2)).toEqual(["state", "complete"]);
  });
});

describe("the window", () => {
  it.each([
    [windowSize - 1, windowSize - 1],
    [windowSize, 0],
    [windowSize + 1, 1],
    [12_000, 1_504],
  ])("of %i events leaves %i to a late listener, and all to an early one", async (total, left) => {
    await using it = await shop();
    const id = it.run();
    const early = await it.follow(id);
    await it.write(id, 0, total);
    const late = await it.follow(id);
    it.jobs.complete(id);
    await Promise.all([early.end, late.end]);
    expect(early.texts()).toEqual(numbers(0, total));
    expect(late.texts()).toEqual(numbers(total - left, total));
    const after = it.client.follow(id);
    await after.end;
    expect(after.texts()).toEqual(numbers(total - left, total));
  });

  it("is read to its end by who is less than one behind; who is more jumps, without a word", async () => {
    await using it = await shop();
    const id = it.run();
    const stream = await it.follow(id);
    it.jobs.write(id, lines(0, 1));
    const release = it.fake.holdStreams("output");
    it.jobs.write(id, lines(1, windowSize + 10));
    release();
    await until(() => it.fake.fullStreams() === 0 && stream.texts().length === windowSize + 10, { message: "all" });
    const again = it.fake.holdStreams("output");
    it.jobs.write(id, lines(windowSize + 10, 3 * windowSize + 5));
    again();
    const seen = 2 * windowSize + 5;
    await until(() => stream.texts().length === seen, { message: "the rest of one window and the newest" });
    expect(stream.texts().slice(0, 2 * windowSize)).toEqual(numbers(0, 2 * windowSize));
    expect(stream.texts().slice(2 * windowSize)).toEqual(numbers(3 * windowSize, 3 * windowSize + 5));
  });
});

it("a client that goes is forgotten", async () => {
  await using it = await shop();
  const id = it.run();
  const stream = await it.follow(id);
  expect(it.fake.streams()).toBe(1);
  stream.cancel();
  await until(() => it.fake.streams() === 0, { message: "the server to notice" });
  it.jobs.write(id, lines(0, 1));
  expect(it.fake.calls("GetJobStream")).toEqual({ made: 1, inFlight: 0, maxInFlight: 1 });
});

it("events that nobody knows come through as they are", async () => {
  await using it = await shop();
  const id = it.run();
  const table = {
    $case: "table" as const,
    value: { headers: ["a"], rows: [{ entries: [{ value: "b", color: "" }] }] },
  };
  const raw = { $case: "raw" as const, value: { data: Buffer.from([0xff, 0x00, 0xfe]), stderr: true } };
  const unknown = { _unknownFields: { 90: [Buffer.from([3, 1, 2, 3])] } };
  it.jobs.write(id, [{ event: table }, { event: raw }, unknown]);
  it.jobs.complete(id);
  const stream = it.client.follow(id);
  await stream.end;
  expect(stream.terminals()[0]?.events).toMatchObject([{ event: table }, { event: raw }, unknown]);
});
