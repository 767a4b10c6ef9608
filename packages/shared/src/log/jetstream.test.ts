import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { describe, expect, it } from "vitest";
import { sourceName, sourceParts } from "../source.ts";
import { delay } from "../sync/delay.ts";
import { acknowledged, newEvent, publishEach, testWriter } from "../testing/log-messages.ts";
import { startTestNats } from "../testing/nats.ts";
import { testStream, testWorkspace } from "../testing/test-log.ts";
import { until } from "../testing/until.ts";
import { LogUnusableError, type OpenLogOptions, openLog, reachLogs } from "./jetstream.ts";
import { logContract, take } from "./log.contract.ts";
import { LogReplacedError } from "./log.ts";
import { endOf, logStart, type Offset, offsetOf, sequenceOf } from "./offset.ts";
import { messageSubject } from "./subjects.ts";

const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

const never = new AbortController().signal;

/** A server of its own: a stream that is deleted and made again at once can come back with old messages (2.15.1). */
async function serve() {
  const server = await startTestNats();
  const nc = await connect({ servers: server.url });
  const { streams } = await jetstreamManager(nc);
  return {
    nc,
    streams,
    async [Symbol.asyncDispose]() {
      await nc.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function open(options: Partial<OpenLogOptions> = {}) {
  const served = await serve();
  const log = await openLog(served.nc, { workspace: testWorkspace, syncKnown: true, ...options });
  return {
    ...served,
    ...log,
    async [Symbol.asyncDispose]() {
      await log[Symbol.asyncDispose]();
      await served[Symbol.asyncDispose]();
    },
  };
}

/** A log beside that of another workspace, which is written and followed all the time. */
async function openBesideAnother() {
  await using stack = new AsyncDisposableStack();
  const log = stack.use(await open());
  const other = stack.use(await openLog(log.nc, { workspace: "globex", syncKnown: true }));
  const writer = testWriter(other.writer, sourceName({ ...sourceParts(alice), workspace: "globex" }), {
    perMessage: 2,
  });
  await writer.append(6);
  const over = new AbortController();
  const write = async () => {
    while (!over.signal.aborted) {
      await writer.append(2, { channel: "v2", kind: "deploy.started" });
      await delay(2, over.signal);
    }
  };
  const followed: Offset[] = [];
  const follow = async (signal: AbortSignal) => {
    for await (const { offset } of other.reader.follow({ afterOffset: logStart, subjects: [] }, { signal }))
      followed.push(offset);
  };
  const left = new AbortController();
  const [writing, following] = [write(), follow(left.signal)];
  const owned = stack.move();
  return {
    ...log,
    async [Symbol.asyncDispose]() {
      over.abort();
      await writing;
      await until(() => followed.length >= writer.written.length, {
        message: "the other log to be followed to its end",
      });
      left.abort();
      await following;
      await owned.disposeAsync();
      expect(followed).toEqual(writer.written);
    },
  };
}

logContract("JetStream", openBesideAnother);

describe("opening", () => {
  it("processes that create the log at the same time agree on its epoch, and it stays", async () => {
    await using server = await serve();
    const epochs = await Promise.all(
      Array.from({ length: 8 }, async () => (await openLog(server.nc, { workspace: testWorkspace })).epoch),
    );
    expect(epochs[0]).toMatch(/^[0-9a-z]{6}$/);
    expect(
      new Set([...epochs, (await openLog(server.nc, { workspace: testWorkspace, create: false })).epoch]).size,
    ).toBe(1);
  });

  it("a missing log is created only on request", async () => {
    await using server = await serve();
    await expect(openLog(server.nc, { workspace: testWorkspace, create: false })).rejects.toThrow(
      `the stream ${testStream} is not on this nats-server yet.`,
    );
  });

  it("a foreign stream is refused", async () => {
    await using server = await serve();
    await server.streams.add({ name: testStream, subjects: ["other.>"] });
    await expect(openLog(server.nc, { workspace: testWorkspace })).rejects.toThrow(LogUnusableError);
  });

  it.each([
    ["no format", {}, /^the log has another format \(none\) than this version reads \(2\): use the version/],
    ["another format", { "tapedeck-format": "3" }, /^the log has another format \(3\)/],
  ])("a log of %s is refused with what to do", async (_, format, refusal) => {
    await using server = await serve();
    const metadata = { "tapedeck-epoch": "t3k9x2", ...format };
    await server.streams.add({ name: testStream, subjects: ["tapedeck.v1.>"], metadata });
    const opening = openLog(server.nc, { workspace: testWorkspace });
    await expect(opening).rejects.toThrow(LogUnusableError);
    await expect(opening).rejects.toThrow(refusal);
  });

  it("the one log of an earlier Tapedeck is refused, with how its sessions come over", async () => {
    await using server = await serve();
    await reachLogs(server.nc, { syncKnown: true });
    await server.streams.add({ name: "TAPEDECK", subjects: ["tapedeck.v2.>"] });
    const reaching = reachLogs(server.nc, { syncKnown: true });
    await expect(reaching).rejects.toThrow(LogUnusableError);
    await expect(reaching).rejects.toThrow(/`tapedeck export` .* `tapedeck import`/);
  });

  it("an old nats-server is refused with one sentence", async () => {
    await using old = await oldServer("2.11.9");
    const connection = await connect({ servers: old.address, reconnect: false });
    await expect(openLog(connection, { workspace: testWorkspace })).rejects.toThrow(
      "nats-server 2.11.9 is too old for Tapedeck: install 2.12 or newer.",
    );
    await connection.close();
  });

  it("warns that durability is unknown, unless it is known", async () => {
    const warnings: string[] = [];
    await using _log = await open({ warn: (message) => warnings.push(message), syncKnown: false });
    expect(warnings).toEqual([expect.stringContaining("sync_interval: always")]);
  });
});

describe("unexpected contents", () => {
  it("a message that is not an event is reported and skipped, in history and live", async () => {
    const warnings: unknown[] = [];
    await using log = await open({ warn: (_message, fields) => warnings.push(fields?.seq) });
    const abort = new AbortController();
    const writer = testWriter(log.writer, alice);
    const noEvent = () =>
      log.nc.request(messageSubject(alice, "v1", "build.started", "facts"), new Uint8Array([255, 255, 255]), {
        timeout: 60_000,
      });
    await noEvent();
    const caughtUp = Promise.withResolvers<Offset>();
    const events = log.reader.follow(
      { afterOffset: logStart, subjects: [] },
      { signal: abort.signal, caughtUp: caughtUp.resolve },
    );
    const first = events.next();
    await caughtUp.promise;
    await noEvent();
    acknowledged(await log.writer.publish(alice, "w1", [newEvent(alice, 1)], 2));
    expect((await first).value?.offset).toBe(offsetOf(3));
    abort.abort();
    expect(new Set(warnings)).toEqual(new Set([1, 2]));
    await expect(writer.append(1)).rejects.toThrow("wrong-sequence");
  });

  it("an event that can't be decoded is reported and skipped, and the others of its message are read", async () => {
    const warnings: unknown[] = [];
    await using log = await open({ warn: (_message, fields) => warnings.push(fields?.seq) });
    const broken = { ...newEvent(alice, 2), event: new Uint8Array([0x0a, 0x05, 1]) };
    acknowledged(await log.writer.publish(alice, "w1", [newEvent(alice, 1), broken, newEvent(alice, 3)], 0));
    const read = await Array.fromAsync(
      log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(1), new AbortController().signal),
    );
    expect(read.map(({ offset }) => offset)).toEqual([offsetOf(1, 0), offsetOf(1, 2)]);
    expect(warnings).toEqual([1]);
  });

  it("deleted messages are not waited for, not even the last ones", async () => {
    await using log = await open();
    await testWriter(log.writer, alice).append(10);
    for (const seq of [4, 9, 10]) await log.streams.deleteMessage(testStream, seq);
    const signal = new AbortController().signal;
    const left = await Array.fromAsync(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(10), signal));
    expect(left.map(({ offset }) => sequenceOf(offset))).toEqual([1, 2, 3, 5, 6, 7, 8]);
    const caughtUp = Promise.withResolvers<Offset>();
    const abort = new AbortController();
    const options = { signal: abort.signal, caughtUp: caughtUp.resolve };
    const following = take(log.reader.follow({ afterOffset: logStart, subjects: [] }, options), 8);
    expect(await caughtUp.promise).toBe(endOf(10));
    acknowledged(await log.writer.publish(alice, "w1", [newEvent(alice, 11)], 8));
    expect((await following).at(-1)?.offset).toBe(offsetOf(11));
    abort.abort();
  });

  it("little history takes little of the log, however much follows it", async () => {
    await using log = await open();
    await testWriter(log.writer, alice).append(60);
    const before = log.nc.stats().inMsgs;
    const from = { afterOffset: endOf(10), subjects: [] };
    const read = await Array.fromAsync(log.reader.history(from, endOf(13), AbortSignal.timeout(60_000)));
    expect(read.map(({ offset }) => sequenceOf(offset))).toEqual([11, 12, 13]);
    // Beside them the answer to the question for a consumer.
    expect(log.nc.stats().inMsgs - before).toBeLessThan(10);
  });

  it("a message with a time to live expires, the others stay", async () => {
    await using log = await open();
    const text = { ...newEvent(alice, 1, { kind: "log.written" }), ttlSeconds: 1 };
    await publishEach(log.writer, alice, [text, newEvent(alice, 2)], 0);
    await until(async () => (await log.reader.bounds()).firstOffset === offsetOf(2), { message: "the text to go" });
    expect((await log.writer.lastOf(alice))?.seq).toBe(2);
  });

  it("a reader gets the remaining messages wherever others were deleted", async () => {
    await using log = await open();
    const text = (ordinal: number) => ({ ...newEvent(alice, ordinal, { kind: "log.written" }), ttlSeconds: 1 });
    const stays = (ordinal: number) => newEvent(alice, ordinal);
    await publishEach(log.writer, alice, [text(1), stays(2), text(3), stays(4), text(5), text(6)], 0);
    await until(async () => (await log.reader.lastMatch([])) === endOf(4), { message: "the text to go" });
    expect((await log.reader.bounds()).lastOffset).toBe(endOf(6));
    const signal = AbortSignal.timeout(60_000);
    for (const [after, left] of [
      [0, [2, 4]],
      [2, [4]],
      [5, []],
    ] as const) {
      const read: number[] = [];
      const from = { afterOffset: endOf(after), subjects: [] };
      for await (const { offset } of log.reader.history(from, endOf(6), signal)) read.push(sequenceOf(offset));
      expect(read).toEqual(left);
    }
    const followed: number[] = [];
    const caughtUp = Promise.withResolvers<Offset>();
    const following = (async () => {
      const options = { signal, caughtUp: caughtUp.resolve };
      for await (const { offset } of log.reader.follow({ afterOffset: endOf(1), subjects: [] }, options)) {
        followed.push(sequenceOf(offset));
        if (offset === offsetOf(7)) return;
      }
    })();
    expect(await caughtUp.promise).toBe(endOf(6));
    acknowledged(await log.writer.publish(alice, "w1", [stays(7)], 4));
    await following;
    expect(followed).toEqual([2, 4, 7]);
  });

  it("following ends with an error when the log is recreated", async () => {
    await using log = await open();
    const caughtUp = Promise.withResolvers<Offset>();
    const options = { signal: new AbortController().signal, caughtUp: caughtUp.resolve };
    const next = log.reader.follow({ afterOffset: logStart, subjects: [] }, options).next();
    const failed = expect(next).rejects.toThrow(LogReplacedError);
    await caughtUp.promise;
    await log.streams.delete(testStream);
    await openLog(log.nc, { workspace: testWorkspace });
    await failed;
  });

  it("reading history ends with an error when the log is recreated meanwhile, not with the other log's events", async () => {
    await using log = await open();
    await testWriter(log.writer, alice).append(200);
    const history = log.reader.historyBatches({ afterOffset: logStart, subjects: [] }, endOf(200), never);
    await history.next();
    await log.streams.delete(testStream);
    const other = await openLog(log.nc, { workspace: testWorkspace });
    await testWriter(other.writer, alice).append(200);
    await expect(Array.fromAsync(history)).rejects.toThrow(LogReplacedError);
  });

  it("reading single events for long ends with an error when the log is recreated, not with the other log's events", async () => {
    await using log = await open();
    const { append, written } = testWriter(log.writer, alice);
    await append(100);
    const reading = log.reader.readBatches(written, never);
    await reading.next();
    await log.streams.delete(testStream);
    const other = await openLog(log.nc, { workspace: testWorkspace });
    await testWriter(other.writer, alice).append(100);
    const read: unknown[] = [];
    const rest = async () => {
      for await (const [held] of reading) read.push(held?.offset);
    };
    await expect(rest()).rejects.toThrow(LogReplacedError);
    // What was read before.
    expect(read.length).toBeLessThan(16);
  });
});

/** Says hello as a nats-server of another version. */
async function oldServer(version: string) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => data.includes("PING") && socket.write("PONG\r\n"));
    socket.write(`INFO ${JSON.stringify({ server_id: "x", version, headers: true, max_payload: 8388608 })}\r\n`);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { address: `127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => void server.close() };
}
