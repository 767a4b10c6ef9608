import { once } from "node:events";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { expect, it } from "vitest";
import { sourceName } from "../source.ts";
import { acknowledged, newEvent } from "../testing/log-messages.ts";
import { startTestNats } from "../testing/nats.ts";
import { connectThroughRestarts } from "../testing/nats-connection.ts";
import { testStream, testWorkspace } from "../testing/test-log.ts";
import { until } from "../testing/until.ts";
import { openLog } from "./jetstream.ts";
import { endOf, logStart, type Offset, sequenceOf } from "./offset.ts";

const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
/** Long enough for any machine: of logs that are expected to answer. */
const patient = { timeoutMs: 60_000, syncKnown: true };

it("a lost answer leaves the outcome unknown, and the source's last message resolves it", async () => {
  await using server = await startTestNats();
  await using way = await lossyWay(server.port);
  const nc = await connectThroughRestarts(way.address);
  const log = await openLog(nc, { workspace: testWorkspace, ...patient });
  // It gives up soon what is never answered.
  const hasty = await openLog(nc, { workspace: testWorkspace, timeoutMs: 300, syncKnown: true });
  acknowledged(await log.writer.publish(alice, "w1", [newEvent(alice, 1)], 0));

  for (const batch of [[2], [3, 4, 5]]) {
    const expected = (await log.writer.lastOf(alice))?.seq ?? 0;
    way.loseAnswers();
    const events = batch.map((n) => newEvent(alice, n));
    expect((await hasty.writer.publish(alice, "w1", events, expected)).outcome).toBe("unknown");
    way.cut();
    const last = await until(() => hasty.writer.lastOf(alice), { message: "the log to answer again" });
    expect(last).toMatchObject({
      seq: expected + 1,
      mark: { writer: "w1", cursor: { ordinals: { v1: batch.at(-1) } } },
    });
    // Publishing it again with the same expectation is refused, so nothing is there twice.
    expect(await log.writer.publish(alice, "w1", events, expected)).toEqual({ outcome: "wrong-sequence" });
  }
  const read = log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(3), AbortSignal.timeout(60_000));
  expect((await Array.fromAsync(read)).map(({ event }) => Number(event.ordinal))).toEqual([1, 2, 3, 4, 5]);
  await nc.close();
});

it("without an answer or a server the outcome is unknown in time, and writing continues with the log as it was", async () => {
  await using server = await startTestNats({ syncAlways: true });
  const nc = await connectThroughRestarts(server.url);
  const log = await openLog(nc, { workspace: testWorkspace, ...patient });
  const hasty = await openLog(nc, { workspace: testWorkspace, timeoutMs: 200, syncKnown: true });
  let next = 1;
  let expected = 0;
  for (let round = 1; round <= 5; round++) {
    const events = [0, 1, 2].map((n) => newEvent(alice, next + n));
    if (round > 1) await server.kill();
    const { writer } = round > 1 ? hasty : log;
    const published = await writer.publish(alice, "w1", events, expected);
    expect(published.outcome).toBe(round > 1 ? "unknown" : "acknowledged");
    if (round > 1) await server.restart();
    // What the client still held back may land after the reconnect: the same again, and one of the two is refused.
    for (let left = true; left; ) {
      const last = await until(() => hasty.writer.lastOf(alice), { message: "the log to answer again" });
      expected = last.seq;
      left = last.mark.cursor.ordinals.v1 === next - 1;
      if (left) await log.writer.publish(alice, "w1", events, expected);
    }
    next += 3;
    expect((await log.writer.lastOf(alice))?.mark.cursor.ordinals.v1).toBe(next - 1);
  }
  const all = await Array.fromAsync(
    log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(expected), AbortSignal.timeout(60_000)),
  );
  expect(all.map(({ event }) => Number(event.ordinal))).toEqual(Array.from({ length: next - 1 }, (_, i) => i + 1));
  await nc.close();
});

it("a follower continues by itself after kill -9 of the server, without loss or repeats", async () => {
  await using server = await startTestNats({ syncAlways: true });
  const nc = await connectThroughRestarts(server.url);
  const log = await openLog(nc, {
    workspace: testWorkspace,
    timeoutMs: 300,
    syncKnown: true,
    ring: { entries: 8, bytes: 1e6 },
  });
  const { writer } = await openLog(nc, { workspace: testWorkspace, ...patient });
  const abort = new AbortController();
  const followers = Array.from({ length: 5 }, () => {
    const seen: number[] = [];
    const done = (async () => {
      const events = log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: abort.signal });
      for await (const { event } of events) seen.push(Number(event.ordinal));
    })();
    return { seen, done };
  });
  let expected = 0;
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 20; i++) {
      const published = await writer.publish(alice, "w1", [newEvent(alice, expected + 1)], expected);
      expected = acknowledged(published);
    }
    if (round % 2 === 0)
      await until(() => followers.every(({ seen }) => seen.length > 0), { message: "the first event" });
    await server.kill();
    await server.restart();
    await until(() => log.writer.lastOf(alice), { message: "the log to answer again" });
  }
  await until(() => followers.every(({ seen }) => seen.length >= expected), { message: "all events to arrive" });
  abort.abort();
  for (const { seen, done } of followers) {
    await done;
    expect(seen).toEqual(Array.from({ length: expected }, (_, i) => i + 1));
  }
  await nc.close();
});

it("a follower learns how far the log has advanced meanwhile, where nothing is left of that", async () => {
  await using server = await startTestNats();
  await using way = await lossyWay(server.port);
  const [direct, lossy] = [await connect({ servers: server.url }), await connectThroughRestarts(way.address)];
  const { writer } = await openLog(direct, { workspace: testWorkspace, ...patient });
  const { reader } = await openLog(lossy, { workspace: testWorkspace, ...patient });
  const publish = (n: number) => writer.publish(alice, "w1", [newEvent(alice, n)], n - 1);
  await publish(1);
  const abort = new AbortController();
  const reached: Offset[] = [];
  const options = { signal: abort.signal, reached: (end: Offset) => void reached.push(end) };
  const following = Array.fromAsync(reader.follow({ afterOffset: logStart, subjects: [] }, options));
  await until(() => reached.at(-1) === endOf(1), { message: "the first event" });

  way.loseAnswers();
  expect(acknowledged(await publish(2))).toBe(2);
  await (await jetstreamManager(direct)).streams.deleteMessage(testStream, 2, true);
  way.cut();
  await until(() => reached.at(-1) === endOf(2), { message: "the log's end" });
  abort.abort();
  expect((await following).map(({ offset }) => sequenceOf(offset))).toEqual([1]);
  await Promise.all([direct.close(), lossy.close()]);
});

it("a follower ends at once when its signal aborts, also while the server is away", async () => {
  await using server = await startTestNats();
  const nc = await connectThroughRestarts(server.url);
  // What it asks the server is not given up within this test.
  const log = await openLog(nc, { workspace: testWorkspace, timeoutMs: 2 ** 31 - 1, syncKnown: true });
  const abort = new AbortController();
  await server.stop();
  const next = log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: abort.signal }).next();
  const history = log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(10), abort.signal).next();
  abort.abort();
  expect(await next).toEqual({ done: true, value: undefined });
  expect(await history).toEqual({ done: true, value: undefined });
  await nc.close();
});

/** A way to the server on which answers can get lost. */
async function lossyWay(port: number) {
  const sockets = new Set<Socket>();
  let losing = false;
  const server = createServer((near) => {
    const far = dial(port, "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.on("data", (data) => losing || near.write(data));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const cut = () => {
    losing = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    loseAnswers() {
      losing = true;
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
    },
  };
}
