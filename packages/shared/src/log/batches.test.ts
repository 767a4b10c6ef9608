import { expect, it } from "vitest";
import type { SourceName } from "../source.ts";
import { testWriter } from "../testing/log-messages.ts";
import { startTestLog, testSources } from "../testing/test-log.ts";
import { frameOf } from "./batch/batch.ts";
import type { HeldBatches, HeldEvent } from "./log.ts";
import { endOf, logStart, type Offset } from "./offset.ts";
import { channelFilter, sourceFilter } from "./subjects.ts";

const alice = testSources[0] as SourceName;

async function take(batches: HeldBatches, count: number): Promise<readonly (readonly HeldEvent[])[]> {
  const taken: (readonly HeldEvent[])[] = [];
  for await (const batch of batches) {
    taken.push(batch);
    if (taken.flat().length >= count) break;
  }
  return taken;
}

const offsets = (batches: readonly (readonly HeldEvent[])[]): readonly Offset[] =>
  batches.flat().map(({ offset }) => offset);

it("a batch of history is what matches of neighboring messages, and none is empty", async () => {
  await using log = await startTestLog();
  const writer = testWriter(log.writer, alice, { perMessage: 8 });
  await writer.append(8, { channel: "v2" });
  await writer.append(16);
  const last = await writer.append(8, { channel: "v2" });
  const from = { afterOffset: logStart, subjects: [channelFilter(alice, "v2")] };
  const batches = await Array.fromAsync(log.reader.historyBatches(from, endOf(last), new AbortController().signal));
  expect(batches.map(({ length }) => length)).not.toContain(0);
  expect(offsets(batches)).toEqual([...writer.written.slice(0, 8), ...writer.written.slice(-8)]);
  for (const held of batches.flat()) {
    expect(held.decode()).toMatchObject({ offset: held.offset, subject: held.subject, event: { channel: "v2" } });
    expect(held.isShared).toBe(false);
  }
});

it("a batch of history ends at 32 events, at 128 KiB of messages, and where the range does", async () => {
  await using log = await startTestLog();
  const writer = testWriter(log.writer, alice);
  await writer.append(70);
  const original = {
    type: "",
    bytes: Buffer.alloc(50 * 1024),
    size: 50n * 1024n,
    sha256: Buffer.of(),
    head: Buffer.of(),
  };
  const last = await writer.append(4, { original });
  await writer.append(3);
  const from = { afterOffset: logStart, subjects: [] };
  const batches = await Array.fromAsync(log.reader.historyBatches(from, endOf(last), new AbortController().signal));
  expect(offsets(batches)).toEqual(writer.written.slice(0, 74));
  // The end of a pull, and work that has lasted 5 ms, end a batch too.
  expect(batches.length).toBeLessThan(20);
  expect(Math.max(...batches.map(({ length }) => length))).toBeLessThanOrEqual(32);
  const large = batches.map((batch) => batch.filter(({ bytes = [] }) => bytes.length > original.bytes.length).length);
  expect(Math.max(...large)).toBeLessThanOrEqual(3);
});

it("live batches are shared, give each event once, and what was erased meanwhile can't be read from them", async () => {
  await using log = await startTestLog();
  const writer = testWriter(log.writer, alice, { perMessage: 10 });
  const over = new AbortController();
  const follow = () => {
    const caughtUp = Promise.withResolvers<Offset>();
    const from = { afterOffset: logStart, subjects: [sourceFilter(alice)] };
    const batches = log.reader.followBatches(from, { signal: over.signal, caughtUp: caughtUp.resolve });
    return { caughtUp: caughtUp.promise, taken: take(batches, 40) };
  };
  const followers = [follow(), follow()];
  await Promise.all(followers.map(({ caughtUp }) => caughtUp));
  await writer.append(40, { session: "gone" });
  const [one, other] = await Promise.all(followers.map(({ taken }) => taken));
  expect(offsets(one ?? [])).toEqual(writer.written);
  expect(one?.length).toBeLessThan(40);
  const [mine, theirs] = [one?.flat() ?? [], other?.flat() ?? []];
  expect(mine.every((held, index) => held === theirs[index] && held.isShared)).toBe(true);
  expect(mine.map(({ bytes }) => bytes && frameOf(bytes)?.session)).toEqual(Array(40).fill("gone"));

  const next = take(log.reader.followBatches({ afterOffset: writer.written[39] ?? logStart, subjects: [] }, over), 1);
  await writer.append(1, { session: "gone", channel: "tapedeck", kind: "session.erased" });
  await next;
  expect(mine.filter((held) => held.bytes !== undefined || held.decode() !== undefined)).toEqual([]);
  over.abort();
});
