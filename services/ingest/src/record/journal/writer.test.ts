import { setImmediate } from "node:timers/promises";
import { encodeBatch } from "@tapedeck/shared/log/batch/batch";
import type { NewEvent } from "@tapedeck/shared/log/log";
import { sourceName } from "@tapedeck/shared/source";
import { expect, it } from "vitest";
import { type FakeLog, type Fate, fakeLog } from "../testing/fake-log.ts";
import { PublishTurns } from "./publish-turns.ts";
import { LostRaceError } from "./settle.ts";
import { SourceWriter, WriterClosedError } from "./writer.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const retry = { first: 0, max: 1 };
const well: Fate = { lands: "now", answers: true };

const event = (ordinal: number, bytes = 10): NewEvent => ({
  subject: "tapedeck.v2.acme.alice.shop.skaffold.frames.text",
  session: "S",
  event: new Uint8Array(bytes).fill(ordinal % 256),
  cursor: { session: "S", ordinals: { v1: ordinal, tapedeck: 1 }, frames: { v1: ordinal } },
});
const events = (from: number, count: number) => Array.from({ length: count }, (_, i) => event(from + i));
const ordinals = (log: FakeLog) => log.stored.map(({ written }) => written.cursor.ordinals.v1);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

it("a second writer makes the first one stop and say so", async () => {
  const log = fakeLog(() => well);
  await using mine = new SourceWriter({ log, source, writer: "A", afterSeq: 0, retry });
  await mine.reached(mine.append(events(1, 2)));
  await log.publish(source, "B", events(3, 1), log.stored.at(-1)?.seq ?? 0);

  mine.append(events(3, 1));
  expect(await mine.ended).toBeInstanceOf(LostRaceError);
  await expect(mine.reached(3)).rejects.toBeInstanceOf(LostRaceError);
  expect(log.stored.map(({ writer }) => writer)).toEqual(["A", "A", "B"]);
});

/** How many events each message got. */
function sizesOf() {
  const sizes: number[] = [];
  return { sizes, log: fakeLog(() => well, { onPublish: ({ length }) => void sizes.push(length) }) };
}

it("events that wait go out as one message, and groups are never divided", async () => {
  const { sizes, log } = sizesOf();
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  for (let i = 0; i < 700; i++) writer.append(events(1 + i * 3, 3));
  await writer.reached(2_100);
  expect(sizes).toEqual([1_023, 1_023, 54]);
  expect(ordinals(log)).toEqual(upTo(2_100));
});

it("a source that speaks all the time gets its events into fewer messages, and the first one waits for nothing", async () => {
  const { sizes, log } = sizesOf();
  const turns = new PublishTurns();
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry, turns });
  for (let ordinal = 1; ordinal <= 3_000; ordinal++) {
    writer.append(events(ordinal, 1));
    // Long enough for a message that waits only for the end of its turn.
    await setImmediate();
    await setImmediate();
  }
  await writer.reached(3_000);
  expect(sizes[0]).toBe(1);
  expect(sizes.length).toBeLessThan(3_000);
  expect(ordinals(log)).toEqual(upTo(3_000));
});

it("events of one turn of the event loop are one message, and all sources write theirs at once", async () => {
  let turn = 0;
  const writtenIn: number[] = [];
  const sizes: number[] = [];
  const turns = new PublishTurns();
  const writers = ["A", "B", "C"].map((writer) => {
    const onPublish = ({ length }: readonly NewEvent[]) => {
      sizes.push(length);
      writtenIn.push(turn);
    };
    return new SourceWriter({ log: fakeLog(() => well, { onPublish }), source, writer, afterSeq: 0, retry, turns });
  });
  const probes = writers.map(async (writer) => {
    writer.append(events(1, 1));
    await Promise.resolve();
    writer.append(events(2, 1));
    await setImmediate();
    turn++;
  });
  await Promise.all([...probes, ...writers.map((writer) => writer.reached(2))]);
  expect(sizes).toEqual([2, 2, 2]);
  expect(writtenIn).toEqual([0, 0, 0]);
  await Promise.all(writers.map((writer) => writer[Symbol.asyncDispose]()));
});

it("bytes bound a message too, and a group that is larger goes alone", async () => {
  const { sizes, log } = sizesOf();
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  const kibi = 1024;
  writer.append([event(1, 10), event(2, 10)]);
  writer.append([event(3, 40 * kibi), event(4, 40 * kibi)]);
  for (const ordinal of [5, 6, 7]) writer.append([event(ordinal, 30 * kibi)]);
  await writer.reached(7);
  expect(sizes).toEqual([2, 2, 2, 1]);
  expect(ordinals(log)).toEqual(upTo(7));
});

it("a group of many megabytes or events is divided", async () => {
  const { sizes, log } = sizesOf();
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  const mega = 1024 * 1024;
  writer.append([event(1, 6 * mega), event(2, 3 * mega), event(3, 1 * mega), event(4, 10)]);
  writer.append(events(5, 2_000));
  await writer.reached(2_004);
  expect(sizes).toEqual([1, 2, 1, 1_024, 976]);
  expect(ordinals(log)).toEqual(upTo(2_004));
});

const place = "tapedeck.v2.acme.alice.shop.skaffold";
const fact = (ordinal: number, bytes = 10): NewEvent => ({
  ...event(ordinal, bytes),
  subject: `${place}.frames.facts`,
});

it("a message holds one session, one life, and what is Tapedeck's own or not, in the order in which they came", async () => {
  const { sizes, log } = sizesOf();
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  const own = (ordinal: number, noun: string) => ({ ...event(ordinal), subject: `${place}.tapedeck.${noun}` });
  writer.append([event(1), event(2), own(3, "session"), own(4, "session"), own(5, "upstream")]);
  writer.append([{ ...fact(6), session: "T" }]);
  writer.append([{ ...event(7), session: "T", ttlSeconds: 60 }]);
  writer.append([fact(8)]);
  await writer.reached(8);
  expect(sizes).toEqual([2, 2, 1, 1, 1, 1]);
  expect(ordinals(log)).toEqual(upTo(8));
});

it("facts and text share a message where the text is little, or not much more than the facts", async () => {
  const { sizes, log } = sizesOf();
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  const kibi = 1024;
  for (let ordinal = 1; ordinal <= 20; ordinal++)
    writer.append([ordinal % 2 === 0 ? fact(ordinal, kibi) : event(ordinal, kibi)]);
  for (let ordinal = 21; ordinal <= 50; ordinal++) writer.append([event(ordinal, kibi)]);
  writer.append([fact(51)]);
  await writer.reached(51);
  // Twice as much text as facts, and the rest of it alone.
  expect(sizes).toEqual([30, 20, 1]);
  writer.append([fact(52)]);
  for (let ordinal = 53; ordinal <= 72; ordinal++) writer.append([event(ordinal, kibi)]);
  await writer.reached(72);
  // Beside one small fact 8 KiB.
  expect(sizes.slice(3)).toEqual([9, 12]);
  expect(ordinals(log)).toEqual(upTo(72));
});

it("nothing waits for company, and what comes during a publish is the next message", async () => {
  const { sizes, log: inner } = sizesOf();
  const gate = Promise.withResolvers<void>();
  const publishing = Promise.withResolvers<void>();
  const publish: FakeLog["publish"] = async (...published) => {
    publishing.resolve();
    if (inner.stored.length === 0) await gate.promise;
    return inner.publish(...published);
  };
  await using writer = new SourceWriter({ log: { ...inner, publish }, source, writer: "W", afterSeq: 0, retry });
  writer.append(events(1, 1));
  await publishing.promise;
  for (let ordinal = 2; ordinal <= 40; ordinal++) writer.append([event(ordinal)]);
  gate.resolve();
  await writer.reached(40);
  expect(sizes).toEqual([1, 39]);
});

it("a message that is published again is the same, whatever was appended meanwhile", async () => {
  const published: (readonly NewEvent[])[] = [];
  let attempts = 0;
  const log = fakeLog(() => (attempts++ < 3 ? { lands: "never", answers: false } : well), {
    onPublish(events) {
      published.push(events);
      writer.append([event(published.length + 3)]);
    },
  });
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  await writer.reached(writer.append(events(1, 3)));
  const [first, ...again] = published.slice(0, 4).map((events) => encodeBatch(events.map(({ event }) => event)));
  for (const bytes of again) expect(bytes).toEqual(first);
  expect(again).toHaveLength(3);
  expect(ordinals(log).slice(0, 3)).toEqual(upTo(3));
});

it("appending is asked to wait while megabytes are unsent", async () => {
  const gate = Promise.withResolvers<void>();
  const log = fakeLog(() => well, { onPublish: () => gate.promise });
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  let room = false;
  writer.append([event(1, 6 * 1024 * 1024)]);
  writer.append([event(2, 6 * 1024 * 1024)]);
  const waiting = writer.room().then(() => {
    room = true;
  });
  await Promise.resolve();
  expect(room).toBe(false);
  gate.resolve();
  await waiting;
});

it("closing ends every wait", async () => {
  const log = fakeLog(() => ({ lands: "never", answers: false }));
  const writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  writer.append(events(1, 1));
  const waiting = writer.reached(1);
  await Promise.all([expect(waiting).rejects.toBeInstanceOf(WriterClosedError), writer[Symbol.asyncDispose]()]);
});

it("a message that may have landed and expired is not published again", async () => {
  const log = fakeLog(() => ({ lands: "never", answers: false }));
  await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
  writer.append([{ ...event(1), ttlSeconds: 0.1 }]);
  expect(await writer.ended).toBeInstanceOf(LostRaceError);
});
