import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { endOf, logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { acknowledged, newEvent, publishEach } from "@tapedeck/shared/testing/log-messages";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { connect, type NatsConnection } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkLog } from "../../damage/log-check.ts";
import type { Fact } from "../../normalize/fact.ts";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { openTestEnds } from "../../testing/test-ends.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { openSessionRecorder, type SessionRecorder } from "./session-recorder.ts";

let nats: TestNats;
let nc: NatsConnection;
let log: Log;

beforeAll(async () => {
  nats = await startTestNats();
  nc = await connect({ servers: nats.url });
  log = await openLog(nc, { workspace: "acme", syncKnown: true, timeoutMs: 20_000 });
});

afterAll(async () => {
  await log[Symbol.asyncDispose]();
  await nc.close();
  await nats[Symbol.asyncDispose]();
});

/** What begins with "fact" after its time stays; all else is text. */
const normalizer = withFacts(plainNormalizer({ name: "a", replays: true }, { name: "lines", replays: false }));

function withFacts(plain: Normalizer): Normalizer {
  const channels = plain.channels.map((channel) => ({
    ...channel,
    reader() {
      const { read, resume } = channel.reader();
      return {
        resume,
        read(bytes: Uint8Array) {
          const isFact = / fact/.test(Buffer.from(bytes).toString());
          const facts = read(bytes);
          return isFact ? (facts.map((one) => ({ ...one, kind: "build.started" })) as [Fact, ...Fact[]]) : facts;
        },
      };
    },
  }));
  return { ...plain, channels };
}

/** A tap and its recorder, on a clock of their own that begins now; and all that a reader has ever seen of the source. */
async function harness(developer: string, textTtl: number | undefined) {
  const source = sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" });
  const over = new AbortController();
  const start = Date.now();
  const subjects = [sourceFilter(source)];
  const seen: Event[] = [];
  const caughtUp = Promise.withResolvers<number>();
  const follow = async () => {
    const options = { signal: over.signal, caughtUp: caughtUp.resolve };
    for await (const { event } of log.reader.follow({ afterOffset: logStart, subjects }, options)) seen.push(event);
  };
  const following = follow();
  // It is given what comes, before that can expire.
  await caughtUp.promise;
  let index = 0n;
  let ms = start;
  let recording: SessionRecorder | undefined;
  const hello = { developer, project: "shop", upstream: "skaffold", tap: "T", labels: {}, redact: "on", settings: {} };

  const self = {
    source,
    seen,
    at: (offset: number) => start + offset,
    async open(ttl = textTtl) {
      const options = { log, source, normalizer, signal: over.signal, textTtl: ttl };
      recording = await openSessionRecorder({ ...options, hello: { ...hello, first_index: index + 1n } });
      return recording;
    },
    async push(connection: string, what: Item["what"]) {
      if (recording === undefined) throw new Error("not open");
      await recording.take({ index: ++index, connection, at: timestampOfMs(ms++), what });
    },
    dial: (connection: string) =>
      self.push(connection, { $case: "dialled", value: { address: "here:1", channels: ["a", "lines"] } }),
    write: (connection: string, channel: string, text: string) =>
      self.push(connection, { $case: "frame", value: { channel, bytes: Buffer.from(text), more: false } }),
    /** Nothing more comes for now: all that was said is in the log. */
    async silence() {
      ms += 5_000;
      await recording?.advance(timestampOfMs(ms));
      await recording?.drained();
    },
    /** Stops the recorder as if it had been killed: it records nothing any more. */
    async kill() {
      await recording?.[Symbol.asyncDispose]();
      recording = undefined;
    },
    /** What the log holds now. */
    async events(): Promise<Event[]> {
      const { lastOffset } = await log.reader.bounds();
      const all: Event[] = [];
      const signal = AbortSignal.timeout(60_000);
      for await (const { event } of log.reader.history({ afterOffset: logStart, subjects }, lastOffset, signal))
        all.push(event);
      return all;
    },
    async texts(channel = "a") {
      return (await self.events()).filter((event) => event.channel === channel).map(textOf);
    },
    textDropped: (channel = "a") =>
      until(async () => (await self.texts(channel)).every((text) => / fact/.test(text)), { message: "the text to go" }),
    async [Symbol.asyncDispose]() {
      over.abort();
      await self.kill();
      await following;
    },
  };
  return self;
}

const textOf = ({ original }: Event) => original?.bytes.toString() ?? "";
const kindsOf = (events: readonly Event[]) =>
  events.filter(({ channel }) => channel === "tapedeck").map(({ kind }) => kind);
const cursorOf = async (source: SourceName) => (await log.writer.lastOf(source))?.mark.cursor;

it("text goes, all else stays, and the source's cursor does not go with the text", async () => {
  await using one = await harness("running", 1);
  const recording = await one.open();
  await one.dial("C1");
  await one.write("C1", "a", `${one.at(0)} fact`);
  await one.write("C1", "a", `${one.at(1)} hello`);
  await one.write("C1", "lines", `${one.at(2)} world`);
  await one.silence();
  await one.textDropped("a");
  await one.textDropped("lines");

  expect(kindsOf(await one.events()).at(-1)).toBe("source.checkpoint");
  expect(await one.texts()).toEqual([`${one.at(0)} fact`]);
  expect(await cursorOf(one.source)).toMatchObject({ ordinals: { a: 2, lines: 1 }, frames: { a: 2, lines: 1 } });
  await one.write("C1", "lines", `${one.at(9_000)} again`);
  await recording.drained();
  await until(() => one.seen.some((event) => textOf(event).endsWith("again")), { message: "it to be followed" });
  expect(one.seen.find((event) => textOf(event).endsWith("again"))?.ordinal).toBe(2n);
  expect(await cursorOf(one.source)).toMatchObject({ ordinals: { a: 2, lines: 2 } });
});

it("text that is last again and again needs one checkpoint for each silence", async () => {
  await using one = await harness("often", 2);
  const recording = await one.open();
  await one.dial("C1");
  await one.write("C1", "a", `${one.at(0)} fact`);
  for (let i = 1; i <= 20; i++) await one.write("C1", "a", `${one.at(i)} text`);
  await one.silence();
  await until(() => kindsOf(one.seen).includes("source.checkpoint"), { message: "the checkpoint" });
  await one.write("C1", "a", `${one.at(6_000)} fact`);
  await recording.drained();
  await one.textDropped();
  expect(kindsOf(await one.events()).filter((kind) => kind === "source.checkpoint")).toHaveLength(1);
});

it("no ordinal is used twice, however often recorders died and all their last text expired", async () => {
  await using one = await harness("dead", 3);
  await using other = await harness("other", undefined);
  await other.open();
  await other.dial("C1");
  await one.open();
  await one.dial("C1");
  await one.write("C1", "a", `${one.at(0)} fact`);
  await one.silence();
  let rounds = 0;
  // A recorder that is slow to be killed has said before where it was.
  for (let isForgotten = false; rounds < 3 || !isForgotten; ) {
    const round = ++rounds;
    for (let i = 0; i < 5; i++) {
      await one.write("C1", "a", `${one.at(round * 10_000 + i)} text`);
      await one.write("C1", "lines", `${one.at(round * 10_000 + i)} line`);
      await other.write("C1", "a", `${other.at(round * 10_000 + i)} fact`);
    }
    await one.silence();
    await other.silence();
    await one.kill();
    await one.textDropped("a");
    await one.textDropped("lines");
    if (((await cursorOf(one.source))?.ordinals.lines ?? 0) === 0) isForgotten = true;
    await one.open();
  }
  await one.write("C1", "lines", `${one.at(rounds * 20_000)} line`);
  await one.write("C1", "a", `${one.at(rounds * 20_000)} fact`);
  await one.silence();
  const said = 5 * rounds + 2;
  await until(() => one.seen.filter((event) => event.channel === "a").length === said, { message: "all to be seen" });
  const ids = one.seen.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const channel of ["a", "lines", "tapedeck"]) {
    const ordinals = one.seen.filter((event) => event.channel === channel).map(({ ordinal }) => Number(ordinal));
    expect(ordinals).toEqual([...ordinals].sort((a, b) => a - b));
  }
  expect((await other.texts()).length).toBe(5 * rounds);
});

it("a reconnect that repeats expired text does not bring it back", async () => {
  await using one = await harness("repeat", 1);
  await one.open();
  const said = [`${one.at(0)} fact`, `${one.at(1)} text`, `${one.at(2)} fact two`];
  await one.dial("C1");
  for (const text of said) await one.write("C1", "a", text);
  await one.silence();
  await one.push("C1", { $case: "closed", value: { reason: "cut", process_ended: false } });
  await one.kill();
  await one.textDropped();
  await one.open();
  await one.dial("C2");
  const news = [`${Date.now()} new text`, `${Date.now()} fact three`];
  for (const text of [...said, ...news]) await one.write("C2", "a", text);
  await one.silence();

  expect(kindsOf(await one.events())).toContain("upstream.restored");
  await until(() => one.seen.some((event) => textOf(event).endsWith("three")), { message: "the news" });
  const seen = one.seen.filter((event) => event.channel === "a");
  expect(seen.map(textOf)).toEqual([...said, ...news]);
  expect(seen.map(({ ordinal, frame_ordinal }) => [Number(ordinal), Number(frame_ordinal)])).toEqual(
    [1, 2, 3, 4, 5].map((n) => [n, n]),
  );
  await one.textDropped();
  expect(await one.texts()).toEqual([said[0], said[2], news[1]]);
});

it("an earlier session that goes on numbers on behind its expired text", async () => {
  await using one = await harness("earlier", 1);
  await one.open();
  const first = `${one.at(0)} fact`;
  await one.dial("C1");
  await one.write("C1", "a", first);
  for (let i = 1; i <= 4; i++) await one.write("C1", "a", `${one.at(i)} text`);
  await one.silence();
  await one.dial("C2");
  await one.write("C2", "a", `${one.at(20_000)} fact of another process`);
  await one.silence();
  await one.textDropped();
  await one.dial("C3");
  await one.write("C3", "a", first);
  await one.write("C3", "a", `${one.at(30_000)} fact two`);
  await one.silence();
  await until(() => one.seen.some((event) => textOf(event).endsWith("two")), { message: "the last fact" });
  const session = one.seen.find((event) => textOf(event) === first)?.session;
  const ordinals = one.seen
    .filter((event) => event.channel === "a" && event.session === session)
    .map(({ ordinal }) => Number(ordinal));
  expect(ordinals).toHaveLength(6);
  expect(ordinals.at(-1)).toBeGreaterThan(5);
});

it("a limit that comes or goes later is said before it counts", async () => {
  await using one = await harness("later", undefined);
  await one.open();
  await one.dial("C1");
  await one.write("C1", "a", `${one.at(0)} text that stays`);
  await one.silence();
  expect(await cursorOf(one.source)).not.toHaveProperty("textTtl");
  await one.kill();

  await (await one.open(1)).drained();
  expect(await cursorOf(one.source)).toMatchObject({ textTtl: 1, ordinals: { a: 1, lines: 0 } });
  await one.write("C1", "a", `${one.at(6_000)} text that goes`);
  await one.silence();
  await one.kill();

  await (await one.open(undefined)).drained();
  expect(await cursorOf(one.source)).not.toHaveProperty("textTtl");
  await one.write("C1", "a", `${one.at(7_000)} text that stays too`);
  await one.silence();
  await until(async () => (await one.texts()).length === 2, { message: "the text between to go" });
  expect(kindsOf(await one.events()).filter((kind) => kind === "source.checkpoint")).toHaveLength(2);
});

it("nothing of all this seems lost, nor an earlier session that goes on when text stays again", async () => {
  await using one = await harness("stays-again", undefined);
  await one.open();
  const first = `${one.at(0)} fact`;
  await one.dial("C1");
  await one.write("C1", "a", first);
  await one.silence();
  await one.dial("C2");
  await one.write("C2", "a", `${one.at(10_000)} fact of another process`);
  await one.silence();
  await one.kill();
  await one.open(1);
  await one.write("C2", "a", `${one.at(16_000)} text`);
  await one.silence();
  await one.kill();
  await one.open(undefined);
  await one.dial("C3");
  await one.write("C3", "a", first);
  await one.write("C3", "a", `${one.at(30_000)} fact two`);
  await one.silence();
  await one.kill();
  await one.textDropped();
  const ofFirst = (await one.events()).filter(
    (event) => event.session === one.seen.find(({ session }) => session)?.session,
  );
  const { ordinal = 0n } = ofFirst.findLast(({ channel }) => channel === "a") ?? {};
  expect(ordinal).toBeGreaterThan(2n);

  await using ends = await openTestEnds(nc, { workspace: "acme", epoch: log.epoch });
  const pace = { rest: async () => {} };
  const options = { log, ends, dropped: async () => "nothing" as const, rate: 1_000_000, pace };
  const checked = await checkLog({ ...options, signal: AbortSignal.timeout(60_000) });
  expect(checked?.messages).toBeGreaterThan(50);
  expect(checked?.holes).toEqual([]);
});

it("the log never uses a sequence twice, also when it is killed while its last messages expire", async () => {
  await using own = await startTestNats({ syncAlways: true });
  const client = await connectThroughRestarts(own.url);
  await using ownLog = await openLog(client, { workspace: "acme", syncKnown: true });
  const source = sourceName({ workspace: "acme", developer: "killed", project: "shop", upstream: "skaffold" });
  const stays = newEvent(source, 1);
  const goes = { ...newEvent(source, 2, { kind: "log.written" }), ttlSeconds: 1 };
  const later = { ...newEvent(source, 3, { kind: "log.written" }), ttlSeconds: 30 * 86_400 };
  await publishEach(ownLog.writer, source, [stays, goes, goes], 0);
  const lastSeq = () => ownLog.reader.bounds().then((bounds) => sequenceOf(bounds.lastOffset));
  const isRemoved = async () => (await ownLog.reader.lastMatch([])) === endOf(1);
  // Once before they go, once after.
  for (let kill = 0; kill < 2; kill++) {
    await own.kill();
    await own.restart();
    await until(isRemoved, { message: "the text to go" });
    expect(await lastSeq()).toBe(3);
  }
  expect(acknowledged(await ownLog.writer.publish(source, "W", [later], 1))).toBe(4);
  await client.close();
});
