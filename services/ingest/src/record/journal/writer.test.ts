import type { NewMessage } from "@tapedeck/shared/log/log";
import { sourceName } from "@tapedeck/shared/source";
import { expect, test } from "vitest";
import { type FakeLog, type Fate, fakeLog } from "../testing/fake-log.ts";
import { LostRaceError, openWriter, WriterClosedError } from "./writer.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const retry = { first: 0, most: 1 };
const well: Fate = { lands: "now", answers: true };

const message = (ordinal: number, bytes = 10): NewMessage => ({
  subject: "tapedeck.v1.acme.alice.shop.skaffold.v1.log",
  event: new Uint8Array(bytes).fill(ordinal % 256),
  cursor: { session: "S", ordinals: { v1: ordinal, tapedeck: 1 }, frames: { v1: ordinal } },
});
const messages = (from: number, count: number) => Array.from({ length: count }, (_, i) => message(from + i));
const ordinals = (log: FakeLog) => log.stored.map(({ message }) => message.cursor.ordinals.v1);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

test("a second writer makes the first one stop and say so", async () => {
  const log = fakeLog(() => well);
  await using mine = openWriter({ log, source, writer: "A", afterSeq: 0, retry });
  await mine.reached(mine.append(messages(1, 2)));
  await log.publish(source, "B", messages(3, 1), log.stored.at(-1)?.seq ?? 0);

  mine.append(messages(3, 1));
  expect(await mine.ended).toBeInstanceOf(LostRaceError);
  await expect(mine.reached(3)).rejects.toBeInstanceOf(LostRaceError);
  expect(log.stored.map(({ writer }) => writer)).toEqual(["A", "A", "B"]);
});

test("what waits goes out as one batch, and groups are never divided", async () => {
  const sizes: number[] = [];
  const log = fakeLog(() => well, { onPublish: ({ length }) => void sizes.push(length) });
  await using writer = openWriter({ log, source, writer: "W", afterSeq: 0, retry });
  for (let i = 0; i < 700; i++) writer.append(messages(1 + i * 3, 3));
  await writer.reached(2_100);
  expect(sizes).toEqual([999, 999, 102]);
});

test("bytes bound a batch too, and a message that is larger than a batch goes alone", async () => {
  const sizes: number[] = [];
  const log = fakeLog(() => well, { onPublish: ({ length }) => void sizes.push(length) });
  await using writer = openWriter({ log, source, writer: "W", afterSeq: 0, retry });
  const mega = 1024 * 1024;
  writer.append([message(1, 6 * mega), message(2, 10), message(3, 10)]);
  for (const ordinal of [4, 5, 6]) writer.append([message(ordinal, 1.5 * mega)]);
  await writer.reached(6);
  expect(sizes).toEqual([1, 2 + 2, 1]);
  expect(ordinals(log)).toEqual(upTo(6));
});

test("appending is asked to wait while megabytes are unsent", async () => {
  const gate = Promise.withResolvers<void>();
  const log = fakeLog(() => well, { onPublish: () => gate.promise });
  await using writer = openWriter({ log, source, writer: "W", afterSeq: 0, retry });
  let room = false;
  writer.append([message(1, 6 * 1024 * 1024)]);
  writer.append([message(2, 6 * 1024 * 1024)]);
  const waiting = writer.room().then(() => {
    room = true;
  });
  await Promise.resolve();
  expect(room).toBe(false);
  gate.resolve();
  await waiting;
});

test("closing ends every wait", async () => {
  const log = fakeLog(() => ({ lands: "never", answers: false }));
  const writer = openWriter({ log, source, writer: "W", afterSeq: 0, retry });
  writer.append(messages(1, 1));
  const waiting = writer.reached(1);
  await Promise.all([expect(waiting).rejects.toBeInstanceOf(WriterClosedError), writer[Symbol.asyncDispose]()]);
});

test("a batch that may have landed and expired is not published again", async () => {
  const log = fakeLog(() => ({ lands: "never", answers: false }));
  await using writer = openWriter({ log, source, writer: "W", afterSeq: 0, retry });
  writer.append([{ ...message(1), ttlSeconds: 0.1 }]);
  expect(await writer.ended).toBeInstanceOf(LostRaceError);
});
