import { jetstreamManager } from "@nats-io/jetstream";
import { Original } from "@tapedeck/proto/tapedeck/v1/event";
import { expect, it } from "vitest";
import type { SourceName } from "../../source.ts";
import { acknowledged, newEvent, testWriter } from "../../testing/log-messages.ts";
import { startTestLog, testSources, testStream } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import type { NewEvent } from "../log.ts";
import { endOf, logStart, type Offset, offsetOf, sequenceOf } from "../offset.ts";
import { OutOfRangeError } from "../out-of-range.ts";
import type { Delivered } from "../reading/consumer.ts";
import { sourceFilter } from "../subjects.ts";
import { type FollowDeps, followLog } from "./follow.ts";
import { ring } from "./ring.ts";
import { SharedEvent } from "./shared-event.ts";
import type { Tail } from "./tail.ts";
import { Watches } from "./watches.ts";

const sources = testSources;
const alice = sources[0] as SourceName;

it("a batch of live events ends at 64 KiB, because a reader that stops keeps it", async () => {
  await using log = await startTestLog();
  const writer = testWriter(log.writer, alice);
  const abort = new AbortController();
  const from = { afterOffset: logStart, subjects: [] };
  const batches = log.reader.followBatches(from, { signal: abort.signal });
  await writer.append(1);
  expect((await batches.next()).value).toHaveLength(1);
  // Others have read them, so they are in the ring.
  await writer.append(40, { original: Original.fromPartial({ type: "x", bytes: Buffer.alloc(16 * 1024, 1) }) });
  const other = log.reader.follow(from, { signal: abort.signal });
  for (let seen = 0; seen < 41; seen++) await other.next();
  const counts: number[] = [];
  for (let seen = 0; seen < 40; seen += counts.at(-1) ?? 0) counts.push((await batches.next()).value?.length ?? 0);
  expect(Math.max(...counts)).toBe(4);
  abort.abort();
});

it("a follower never jumps behind a hole at which the tail emptied its ring meanwhile", async () => {
  const watches = new Watches();
  const held = ring<SharedEvent>(logStart, { entries: 100, bytes: 1_000_000 });
  const entry = (sequence: number) => {
    const offset = offsetOf(sequence);
    const subject = "tapedeck.events.x";
    return new SharedEvent({} as Delivered, {
      offset,
      subject,
      bytes: undefined,
      isShared: false,
      decode: () => undefined,
    });
  };
  const lost = new OutOfRangeError("lost", { loss: "lost", earliest: "" });
  const tail: Tail = { now: () => ({ ring: held, last: endOf(11) }), watches, [Symbol.asyncDispose]: async () => {} };
  const deps: FollowDeps = {
    bounds: async () => expect.fail(),
    lastMatch: async () => offsetOf(11),
    assertRetained: async () => {},
    tail: { hold: () => ({ tail, release: () => {} }) },
    history: {
      // biome-ignore lint/correctness/useYield: it throws
      async *batches() {
        throw lost;
      },
    },
  };
  for (const sequence of [1, 2]) held.push(entry(sequence), 10);
  const abort = new AbortController();
  const batches = followLog(deps, { afterOffset: logStart, subjects: [] }, { signal: abort.signal });
  expect((await batches.next()).value).toHaveLength(2);
  held.clear(endOf(10));
  held.push(entry(11), 10);
  await expect(batches.next()).rejects.toBe(lost);
});

it("a follower that is ahead of the tail gets nothing twice", async () => {
  await using log = await startTestLog();
  const writer = testWriter(log.writer, alice);
  const abort = new AbortController();
  const follow = (afterOffset: Offset) => {
    const caughtUp = Promise.withResolvers<Offset>();
    const options = { signal: abort.signal, reached: caughtUp.resolve };
    const events = log.reader.follow({ afterOffset, subjects: [] }, options);
    return { next: events.next(), events, caughtUp: caughtUp.promise };
  };
  // It is as if another process had read the log further than this one's tail.
  const ahead = follow(offsetOf(3));
  await ahead.caughtUp;
  await writer.append(5);
  expect((await ahead.next).value?.offset).toBe(offsetOf(4));
  expect((await ahead.events.next()).value?.offset).toBe(offsetOf(5));
  abort.abort();
});

it("a follower ends at once when it learns that it has all there is, and has enough", async () => {
  await using log = await startTestLog();
  const from = { afterOffset: logStart, subjects: [] };
  for (const reported of ["caughtUp", "reached"] as const) {
    const enough = new AbortController();
    const options = { signal: enough.signal, [reported]: () => enough.abort() };
    expect(await log.reader.follow(from, options).next()).toEqual({ done: true, value: undefined });
  }
});

it("a process that was held up does not take the log for silent", async () => {
  const warnings: string[] = [];
  await using log = await startTestLog({ warn: (message) => warnings.push(message) });
  const writer = testWriter(log.writer, alice);
  const abort = new AbortController();
  const events = log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: abort.signal });
  await writer.append(1);
  expect((await events.next()).value?.offset).toBe(offsetOf(1));
  // The server's heartbeats come meanwhile, and wait to be read.
  for (const start = performance.now(); performance.now() - start < 2_000; );
  await writer.append(1);
  expect((await events.next()).value?.offset).toBe(offsetOf(2));
  expect(warnings).toEqual([]);
  abort.abort();
});

it("a waiting follower learns how far the log has advanced, even without a matching event", async () => {
  await using log = await startTestLog();
  const bob = testWriter(log.writer, sources[1] as SourceName);
  const abort = new AbortController();
  const reached: Offset[] = [];
  const from = { afterOffset: logStart, subjects: [sourceFilter(alice)] };
  const events = log.reader.follow(from, { signal: abort.signal, reached: (end) => void reached.push(end) });
  const first = events.next();
  const last = await bob.append(3);
  await until(() => reached.at(-1) === endOf(last), { message: `sequence ${last} to be reached` });
  const mine = await testWriter(log.writer, alice).append(1);
  expect((await first).value?.offset).toBe(offsetOf(mine));
  expect(reached).not.toContain(endOf(mine)); // not before it is asked for more
  abort.abort();
});

it("erased events are not served from memory, not even to a reader in the middle", async () => {
  await using log = await startTestLog();
  const writer = testWriter(log.writer, alice);
  const abort = new AbortController();
  const from = { afterOffset: logStart, subjects: [sourceFilter(alice)] };
  const follow = () => {
    const reported = Promise.withResolvers<void>();
    const options = { signal: abort.signal, caughtUp: () => reported.resolve() };
    return { events: log.reader.follow(from, options), caughtUp: reported.promise };
  };
  // The tail joins an empty log: it has all that comes.
  const live = follow();
  const first = live.events.next();
  await live.caughtUp;
  const end = await writer.append(3, { session: "gone" });
  const kept = await writer.append(1, { session: "kept" });
  expect((await first).value?.offset).toBe(offsetOf(1));
  await writer.append(1, { session: "gone", channel: "tapedeck", kind: "session.erased" });
  const jsm = await jetstreamManager(log.nc);
  for (let seq = 1; seq <= end; seq++) await jsm.streams.deleteMessage(testStream, seq, true);
  const again = await writer.append(1, { session: "gone" });

  const given = async ({ events }: ReturnType<typeof follow>) => {
    const seqs: number[] = [];
    for await (const { offset } of events) {
      seqs.push(sequenceOf(offset));
      if (offset === offsetOf(again)) return seqs;
    }
    return seqs;
  };
  expect(await given(live)).toEqual([kept, kept + 1, again]);
  expect(await given(follow())).toEqual([kept, kept + 1, again]);
  abort.abort();
});

it("expired events are not served from memory", async () => {
  await using log = await startTestLog();
  const over = new AbortController();
  const seen: number[] = [];
  const caughtUp = Promise.withResolvers<Offset>();
  const reading = (async () => {
    const options = { signal: over.signal, caughtUp: caughtUp.resolve };
    for await (const { offset } of log.reader.follow({ afterOffset: logStart, subjects: [] }, options)) {
      seen.push(sequenceOf(offset));
    }
  })();
  const messages = [1, 2].map((ordinal) => newEvent(alice, ordinal));
  const [first, second] = messages as [NewEvent, NewEvent];
  // What stays comes last: a log whose newest message expires forgets where its end was.
  const publish = (message: NewEvent, after: number) => log.writer.publish(alice, "w1", [message], after);
  // It is given what comes, before that can expire.
  await caughtUp.promise;
  expect(acknowledged(await publish({ ...first, ttlSeconds: 1 }, 0))).toBe(1);
  expect(acknowledged(await publish(second, 1))).toBe(2);
  await until(() => seen.length === 2, { message: "both to be followed" });

  const kept = () =>
    Array.fromAsync(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(2), over.signal));
  await until(async () => (await kept()).length === 1, { message: "the log to have dropped the first" });
  const late = log.reader.follow({ afterOffset: logStart, subjects: [] }, over);
  expect((await late.next()).value).toMatchObject({ offset: offsetOf(2) });
  over.abort();
  await reading;
});
