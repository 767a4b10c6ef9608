import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { expect, it } from "vitest";
import type { SourceName } from "../../source.ts";
import { testWriter } from "../../testing/log-messages.ts";
import { startTestLog, testSources, testStream, testWorkspace } from "../../testing/test-log.ts";
import { openLog } from "../jetstream.ts";
import type { LogReader, RecordedEvent } from "../log.ts";
import { endOf, logStart, type Offset, sequenceOf } from "../offset.ts";
import { OutOfRangeError } from "../out-of-range.ts";
import { sourceFilter } from "../subjects.ts";

const [alice, bob] = testSources as [SourceName, SourceName];
const payload = "x".repeat(4_000);

/** A log, and another connection to it with a small ring, whose followers fall behind. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const written = stack.use(await startTestLog());
  const nc = stack.adopt(await connect({ servers: written.nc.getServer() }), (one) => one.close());
  const ring = { entries: 16, bytes: 1e6 };
  const { reader } = stack.use(
    await openLog(nc, { workspace: testWorkspace, syncKnown: true, timeoutMs: 20_000, ring }),
  );
  const over = new AbortController();
  stack.defer(() => over.abort());
  const owned = stack.move();
  return {
    written,
    reader,
    receivedBytes: () => nc.stats().inBytes,
    writerOf: (source: SourceName, perMessage = 1) => testWriter(written.writer, source, { perMessage }),
    /** A follower that has all there is. */
    async follow(subjects: readonly string[] = [], afterOffset: Offset = logStart) {
      const caughtUp = Promise.withResolvers<Offset>();
      const options = { signal: over.signal, caughtUp: caughtUp.resolve };
      const events = reader.follow({ afterOffset, subjects }, options);
      const first = events.next();
      await caughtUp.promise;
      return { first, events };
    },
    /** The tail of the followers has everything: nothing more comes but what they read. */
    async settled(): Promise<void> {
      const { lastOffset } = await reader.bounds();
      const enough = new AbortController();
      const reached = (offset: Offset) => offset >= lastOffset && enough.abort();
      for await (const _ of reader.follow(
        { afterOffset: lastOffset, subjects: [] },
        { signal: enough.signal, reached },
      ));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type Follower = {
  readonly first: Promise<IteratorResult<RecordedEvent, void>>;
  readonly events: AsyncGenerator<RecordedEvent, void>;
};

async function take({ events }: Pick<Follower, "events">, count: number): Promise<Offset[]> {
  const offsets: Offset[] = [];
  for (let taken = 0; taken < count; taken++) {
    const { value } = await events.next();
    if (value !== undefined) offsets.push(value.offset);
  }
  return offsets;
}

/** Reads the first message again and again, as those do who ask for pages, and counts how often it came. */
async function readPages({ pages }: LogReader, isOver: () => boolean): Promise<number> {
  let count = 0;
  while (!isOver()) {
    expect((await pages.bounds()).lastOffset).toBeGreaterThan(logStart);
    const page = pages.history({ afterOffset: logStart, subjects: [] }, endOf(1), new AbortController().signal);
    expect(await Array.fromAsync(page)).toHaveLength(1);
    count++;
  }
  return count;
}

it("a hundred followers that fall behind together read the log hardly more often than one", async () => {
  const bytesFor = async (laggards: number) => {
    await using on = await harness();
    const [ofAlice, ofBob] = [on.writerOf(alice), on.writerOf(bob)];
    // Every fourth reads one source alone, which has half of the events.
    const isFiltered = (index: number) => index % 4 === 1;
    const followers = await Promise.all(
      Array.from({ length: laggards }, (_, index) => on.follow(isFiltered(index) ? [sourceFilter(alice)] : [])),
    );
    await ofAlice.append(1);
    // Each has the first event, some have a few more, and all stop there.
    await Promise.all(followers.map(({ first }) => first));
    for (let n = 0; n < 300; n++) {
      await ofAlice.append(1, { subject: payload });
      await ofBob.append(1, { subject: payload });
    }
    await on.settled();
    const before = on.receivedBytes();
    let isOver = false;
    const pages = readPages(on.reader, () => isOver);
    const seen = await Promise.all(followers.map((one, index) => take(one, isFiltered(index) ? 300 : 600)));
    isOver = true;
    expect(await pages).toBeGreaterThan(0);
    const inOrder = (offsets: readonly Offset[]) => offsets.toSorted((a, b) => a - b);
    const all = inOrder([...ofAlice.written.slice(1), ...ofBob.written]);
    for (const [index, offsets] of seen.entries())
      expect(offsets).toEqual(isFiltered(index) ? ofAlice.written.slice(1) : all);
    return on.receivedBytes() - before;
  };
  const [one, many] = [await bytesFor(1), await bytesFor(100)];
  // One of them begins alone, the others share. What each asks by itself is small.
  expect(one).toBeGreaterThan(600 * payload.length);
  expect(many).toBeLessThan(3.5 * one);
});

it("a follower that wants few events reads these alone, and is not behind those that want all", async () => {
  await using on = await harness();
  const [ofAlice, ofBob] = [on.writerOf(alice, 4), on.writerOf(bob)];
  const all = await Promise.all(Array.from({ length: 3 }, () => on.follow()));
  const few = await Promise.all(Array.from({ length: 3 }, () => on.follow([sourceFilter(bob)])));
  await ofBob.append(1);
  await Promise.all([...all, ...few].map(({ first }) => first));
  for (let n = 0; n < 20; n++) {
    await ofAlice.append(40, { subject: payload });
    await ofBob.append(1, { subject: payload });
  }
  await on.settled();
  // Those that want all stay where they are: nobody waits for them.
  const before = on.receivedBytes();
  for (const offsets of await Promise.all(few.map((one) => take(one, 20))))
    expect(offsets).toEqual(ofBob.written.slice(1));
  // The first one begins alone. All events have 3 MB.
  expect(on.receivedBytes() - before).toBeLessThan(4 * 20 * payload.length);
  for (const offsets of await Promise.all(all.map((one) => take(one, 820)))) expect(offsets).toHaveLength(820);
});

it("a follower that is a little behind does not wait for those that are far behind", async () => {
  await using on = await harness();
  const writer = on.writerOf(alice);
  const far = await Promise.all([on.follow(), on.follow()]);
  await writer.append(1);
  for (const { first } of far) await first;
  await writer.append(1_500);
  const near = await Promise.all([on.follow([], endOf(1_501)), on.follow([], endOf(1_501))]);
  await writer.append(1);
  for (const { first } of near) await first;
  await writer.append(100);
  await on.settled();
  // The others read on meanwhile, and stop within their pages.
  const reading = far.map((follower) => take(follower, 100));
  for (const one of near) expect((await take(one, 100)).map(sequenceOf)).toEqual(sequences(1_503, 1_602));
  for (const offsets of await Promise.all(reading)) expect(offsets.map(sequenceOf)).toEqual(sequences(2, 101));
  for (const one of far) expect((await take(one, 1_501)).map(sequenceOf)).toEqual(sequences(102, 1_602));
});

it("nothing of an erased session is given from what followers share", async () => {
  await using on = await harness();
  const writer = on.writerOf(alice);
  const followers = await Promise.all(Array.from({ length: 3 }, () => on.follow()));
  await writer.append(1, { session: "kept" });
  for (const { first } of followers) await first;
  await writer.append(60, { session: "kept" });
  const removed = await writer.append(60, { session: "gone" });
  await writer.append(60, { session: "kept" });
  await on.settled();
  // They are within their pages, before what goes.
  for (const offsets of await Promise.all(followers.map((one) => take(one, 10)))) expect(offsets).toHaveLength(10);
  const jsm = await jetstreamManager(on.written.nc);
  for (let seq = removed - 59; seq <= removed; seq++) await jsm.streams.deleteMessage(testStream, seq, true);
  const end = await writer.append(1, { session: "gone", channel: "tapedeck", kind: "session.erased" });
  await on.settled();
  // The first one that fell behind, any of them, reads alone: it may hold a batch that it had read before.
  const given = await Promise.all(followers.map(async (one) => (await take(one, 111)).map(sequenceOf)));
  const remaining = JSON.stringify([...sequences(12, 61), ...sequences(removed + 1, end)]);
  expect(given.filter((sequencesOfOne) => JSON.stringify(sequencesOfOne) === remaining).length).toBeGreaterThan(1);
});

it("each follower that shares gets an error for what the log has dropped", async () => {
  await using on = await harness();
  const writer = on.writerOf(alice);
  const followers = await Promise.all(
    Array.from({ length: 4 }, (_, index) => on.follow(index === 3 ? [sourceFilter(alice)] : [])),
  );
  await writer.append(1);
  for (const { first } of followers) await first;
  await writer.append(1);
  for (const one of followers) await take(one, 1);
  await writer.append(600);
  await on.settled();
  const jsm = await jetstreamManager(on.written.nc);
  await jsm.streams.update(testStream, { max_msgs: 50 });
  const failures = await Promise.all(followers.map(({ events }) => events.next().catch((error: unknown) => error)));
  for (const failure of failures) expect(failure).toBeInstanceOf(OutOfRangeError);
});

function sequences(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
