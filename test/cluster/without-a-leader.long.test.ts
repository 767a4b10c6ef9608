import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ServerWatch } from "@tapedeck/shared/log/cluster/server-watch";
import { connectLogs } from "@tapedeck/shared/log/connect-log";
import { LogNotReadyError, openLog } from "@tapedeck/shared/log/jetstream";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, logStart, offsetOf } from "@tapedeck/shared/log/offset";
import { endsStream, streamOf } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import { sourceName } from "@tapedeck/shared/source";
import { newEvent, testWriter } from "@tapedeck/shared/testing/log-messages";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { pino } from "pino";
import { expect, inject, it } from "vitest";
import { NatsCluster } from "./nats-cluster.ts";

const [alice, bob] = ["alice", "bob"].map((developer) =>
  sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" }),
) as [ReturnType<typeof sourceName>, ReturnType<typeof sourceName>];

const { signal } = new AbortController();
const everything = { afterOffset: logStart, subjects: [] };
const ordinals = (events: readonly RecordedEvent[]) => events.map(({ event }) => Number(event.ordinal));

/** A log of three servers: one leads it, and only one other will be left. */
async function startLog() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await NatsCluster.start(await mkdtemp(join(inject("serversFolder"), "cluster-"))));
  const open = async (...urls: readonly string[]) => {
    const nc = await connectThroughRestarts([...urls], { noRandomize: true });
    stack.defer(() => nc.close());
    return stack.use(await openLog(nc, { workspace: "default", replicas: 3, syncKnown: true, waitMs: 60_000 }));
  };
  await open(...nats.names.map((name) => nats.urlOf(name)));
  const [leader, left] = [await nats.leader(), await nats.follower()];
  const third = nats.names.find((name) => name !== leader && name !== left) ?? "";
  await nats.whole([streamOf("default")]);
  await nats.answersAlone(left);
  const ofLeader = await open(nats.urlOf(leader), nats.urlOf(left));
  const ofOther = await open(nats.urlOf(left));
  const owned = stack.move();
  return {
    nats,
    left,
    ofLeader,
    ofOther,
    /** The third has no leader then, and nobody becomes one. */
    async loseTwo() {
      await nats.kill(leader);
      await nats.kill(third);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** On a busy machine no replica may answer within a second. Clients ask again then, too. */
const inTime = <T>(ask: () => Promise<T>) => until(ask, { message: "the replica that is left to answer in time" });

it("pages are read from a replica while no server leads the log", async () => {
  await using log = await startLog();
  const { reader } = log.ofOther;
  const { writer } = log.ofLeader;
  const [ofAlice, ofBob] = [testWriter(writer, alice), testWriter(writer, bob)];
  await ofAlice.append(100);
  await ofBob.append(1);
  await ofAlice.append(100);
  // More than one turn reads.
  const { original } = Event.fromPartial({ original: { bytes: Buffer.alloc(2 << 20) } });
  const large = newEvent(bob, 2, { original });
  await writer.publish(bob, "w1", [large], 101);
  await log.nats.whole([streamOf("default")]);
  const { pages } = reader;
  const before = await Array.fromAsync(pages.history(everything, endOf(202), signal));
  expect(before).toHaveLength(202);

  await log.loseTwo();
  await expect(reader.bounds()).rejects.toMatchObject({ code: "not_ready" });
  const { lastOffset, firstOffset, mayBeBehind } = await inTime(() => pages.bounds());
  expect([firstOffset, lastOffset, mayBeBehind]).toEqual([offsetOf(1), endOf(202), true]);
  expect(await inTime(() => Array.fromAsync(pages.history(everything, lastOffset, signal)))).toEqual(before);
  const ofBobAlone = { afterOffset: endOf(50), subjects: [before[100]?.subject ?? ""] };
  expect(ordinals(await inTime(() => Array.fromAsync(pages.history(ofBobAlone, endOf(201), signal))))).toEqual([1]);
  const offsets = [offsetOf(202), offsetOf(7), offsetOf(101)];
  const picked = await inTime(() => Array.fromAsync(pages.read(offsets, signal)));
  expect(picked).toEqual([201, 6, 100].map((index) => before[index]));
  expect(await inTime(() => pages.firstSince(new Date(0)))).toBe(offsetOf(1));
  // Another replica might have one.
  await expect(pages.firstSince(new Date(Date.now() + 60_000))).rejects.toMatchObject({ code: "not_ready" });
});

it("no page ends before what its reader knows of, while the replica is behind", async () => {
  await using log = await startLog();
  const { reader, writer } = log.ofLeader;
  const ofAlice = testWriter(writer, alice);
  await ofAlice.append(3);
  await log.nats.whole([streamOf("default")]);
  log.nats.cutOff(log.left, { clients: false });
  await ofAlice.append(2);
  expect((await reader.bounds()).lastOffset).toBe(endOf(5));

  await log.loseTwo();
  const { pages } = reader;
  const bounds = await inTime(() => pages.bounds());
  expect(bounds).toMatchObject({ lastOffset: endOf(5), mayBeBehind: true });
  const there = await inTime(() => Array.fromAsync(pages.history(everything, endOf(3), signal)));
  expect(ordinals(there)).toEqual([1, 2, 3]);
  const all = Array.fromAsync(pages.history(everything, endOf(5), signal));
  await expect(all).rejects.toMatchObject({ code: "not_ready" });
  const missing = Array.fromAsync(pages.read([offsetOf(5)], signal));
  await expect(missing).rejects.toMatchObject({ code: "not_ready" });
});

/** A log of three servers, of which a follower will be cut off from the others. */
async function startThree() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await NatsCluster.start(await mkdtemp(join(inject("serversFolder"), "cluster-"))));
  await using _made = await openOn(nats, nats.names[0] ?? "");
  const [leader, follower] = [await nats.leader(), await nats.follower()];
  await nats.whole([streamOf("default")]);
  const owned = stack.move();
  return { nats, leader, follower, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function openOn(nats: NatsCluster, name: string) {
  await using stack = new AsyncDisposableStack();
  const nc = await connectThroughRestarts(nats.urlOf(name));
  stack.defer(() => nc.close());
  // A busy machine acknowledges late.
  const log = stack.use(
    await openLog(nc, { workspace: "default", replicas: 3, syncKnown: true, waitMs: 60_000, timeoutMs: 10_000 }),
  );
  const owned = stack.move();
  return { ...log, nc, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

it("a follower does not take the end of a server that was cut off for that of another log", async () => {
  await using log = await startThree();
  const { nats, leader, follower } = log;
  await using read = await openOn(nats, leader);
  const { nc, reader } = read;
  await using written = await openOn(nats, leader);
  const ofAlice = testWriter(written.writer, alice);
  await ofAlice.append(3);
  await nats.whole([streamOf("default")]);
  const over = new AbortController();
  const events = reader.follow(everything, over);
  for (let seq = 1; seq <= 3; seq++) expect((await events.next()).value?.offset).toBe(offsetOf(seq));

  nats.cutOff(follower, { clients: false });
  await ofAlice.append(2);
  for (let seq = 4; seq <= 5; seq++) expect((await events.next()).value?.offset).toBe(offsetOf(seq));
  const next = events.next();
  nc.setServers([nats.urlOf(follower)]);
  await nc.reconnect();
  await until(() => nc.getServer() === nats.urlOf(follower), { message: "the other server" });
  // It answers for itself once it has missed the leader for some seconds.
  const { streams } = await jetstreamManager(nc, { checkAPI: false, timeout: 2_000 });
  const { state } = await until(() => streams.info(streamOf("default")), { message: "its own answer" });
  expect(state.last_seq).toBe(3);
  await expect(reader.bounds()).rejects.toMatchObject({ code: "not_ready" });

  nats.reconnect(follower);
  // The one that comes back may begin an election, and a publish may have no answer meanwhile.
  await nats.whole([streamOf("default")]);
  await ofAlice.append(1);
  expect((await next).value?.offset).toBe(offsetOf(6));
  expect((await reader.bounds()).lastOffset).toBe(endOf(6));
  over.abort();
});

it("a server that is cut off, and answers for itself, is left for another one", async () => {
  await using log = await startThree();
  const { nats, leader, follower } = log;
  await using made = await openOn(nats, leader);
  const jsm = await jetstreamManager(made.nc, { checkAPI: false });
  await jsm.streams.add({ name: endsStream, subjects: ["ends"], num_replicas: 3 });
  await nats.whole([streamOf("default"), endsStream]);
  nats.cutOff(follower, { clients: false });
  const nc = await connectNats("test", { url: nats.urlOf(follower) }, silentLogger);
  const { streams } = await jetstreamManager(nc, { checkAPI: false, timeout: 2_000 });
  const knowsLeader = async () => (await streams.info(endsStream)).cluster?.leader_since !== undefined;
  await until(async () => !(await knowsLeader()), { message: "its own answer" });
  nc.setServers([nats.urlOf(follower), nats.urlOf(leader)]);
  await using _watch = new ServerWatch(nc, { hasOthers: true, logger: silentLogger });
  // It may be the third one, which the others name.
  await until(knowsLeader, { message: "an answer of a server that is in touch with the others" });
  await nc.close();
});

it("a log whose servers elect a leader is no log that can't be used", async () => {
  await using log = await startThree();
  const { nats, leader, follower } = log;
  const others = nats.names.filter((name) => name !== follower);
  const nc = await connect({ servers: nats.urlOf(follower) });
  await Promise.all(others.map((name) => nats.kill(name)));
  await expect(openLog(nc, { workspace: "default", syncKnown: true, waitMs: 1 })).rejects.toThrow(LogNotReadyError);
  await nc.close();

  const said: string[] = [];
  const logger = pino({}, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  const settings = { url: nats.urlOf(follower), replicas: 3, syncAlways: true };
  const opening = connectLogs({
    service: "test",
    settings,
    logger,
    signal: new AbortController().signal,
    awayMessage: "away",
    prepare: async (connected) => {
      await connected.logs.of("default");
      return connected;
    },
  });
  // The server that is left answers for itself once it has missed the leader for some seconds: then the log is open.
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  opening.then(over, over);
  await until(() => isOver || said.includes("away"), { message: "the first attempt to fail, or to succeed" });
  await nats.restart(leader);
  await (await opening)?.[Symbol.asyncDispose]();
});
