import { Original } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, test } from "vitest";
import { encodeEvent } from "../events/codec.ts";
import { sourceName } from "../source.ts";
import { acknowledged, testMessage, testWriter } from "../testing/log-messages.ts";
import { until } from "../testing/until.ts";
import type { LogReader, LogWriter, NewMessage, RecordedEvent } from "./log.ts";
import { endOf, logStart, type Offset, offsetOf, sequenceOf } from "./offset.ts";
import { channelFilter, sourceFilter } from "./subjects.ts";

export type LogUnderTest = AsyncDisposable & { readonly writer: LogWriter; readonly reader: LogReader };

export async function take(events: AsyncIterable<RecordedEvent>, count: number): Promise<readonly RecordedEvent[]> {
  const taken: RecordedEvent[] = [];
  if (count === 0) return taken;
  for await (const recorded of events) if (taken.push(recorded) === count) break;
  return taken;
}

const seqs = (events: readonly RecordedEvent[]) => events.map(({ offset }) => sequenceOf(offset));
const upTo = (end: number, from = 1) => Array.from({ length: end - from + 1 }, (_, i) => from + i);
const never = new AbortController().signal;
const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const bob = sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" });

/** What every implementation of the log must do. Each call of `open` gives an empty log. */
export function logContract(name: string, open: () => Promise<LogUnderTest>): void {
  test(`${name}: single events are read in the order asked for, without those that are not there`, async () => {
    await using log = await open();
    await testWriter(log.writer, alice).append(40);
    const history = await take(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(40), never), 40);
    const [there, gone] = [
      [40, 3, ...upTo(30, 10)].map((seq) => offsetOf(seq)),
      [offsetOf(77), offsetOf(3, 1), endOf(4)],
    ];
    const read = await Array.fromAsync(log.reader.read([...gone, ...there], never));
    expect(read).toEqual(there.map((offset) => history[sequenceOf(offset) - 1]));
    expect(await Array.fromAsync(log.reader.read([], never))).toEqual([]);
  });

  describe(`${name}: writing`, () => {
    test("a source without messages has no last message", async () => {
      await using log = await open();
      expect(await log.writer.lastOf(alice)).toBeUndefined();
      expect(await log.reader.bounds()).toEqual({ firstOffset: offsetOf(1), lastOffset: logStart });
    });

    test("its clock is the clock of its events, even before the first one", async () => {
      await using log = await open();
      const before = await log.reader.now();
      expect(before.lastOffset).toBe(logStart);
      const lastSeq = await testWriter(log.writer, alice).append(1);
      const [recorded] = await take(
        log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(lastSeq), never),
        1,
      );
      const after = await log.reader.now();
      expect(after.lastOffset).toBe(endOf(lastSeq));
      const ms = [before.at, recorded?.recordedAt, after.at].map((time) => time?.getTime() ?? 0);
      expect(ms).toEqual(ms.toSorted((a, b) => a - b));
      // Milliseconds of its own, not ours.
      expect(Math.abs(after.at.getTime() - Date.now())).toBeLessThan(60_000);
    });

    test.each([1, 2, 1_000])("%i messages land together and advance writer and cursor", async (count) => {
      await using log = await open();
      const messages = upTo(count).map((ordinal) => testMessage(alice, ordinal));
      expect(await log.writer.publish(alice, "w1", messages, 0)).toEqual({ outcome: "acknowledged", lastSeq: count });
      expect(await log.writer.lastOf(alice)).toEqual({
        seq: count,
        mark: { writer: "w1", cursor: { session: "s", ordinals: { v1: count }, frames: { v1: count } } },
      });
    });

    test.each([1, 3])("%i messages with a stale expectation change nothing", async (count) => {
      await using log = await open();
      await testWriter(log.writer, alice).append(2);
      const messages = upTo(count).map((ordinal) => testMessage(alice, ordinal));
      expect(await log.writer.publish(alice, "w2", messages, 1)).toEqual({ outcome: "wrong-sequence" });
      expect((await log.writer.lastOf(alice))?.mark.writer).toBe("w1");
      expect(await log.reader.bounds()).toEqual({ firstOffset: offsetOf(1), lastOffset: endOf(2) });
    });

    test("sources do not affect each other", async () => {
      await using log = await open();
      await testWriter(log.writer, alice).append(3);
      const other = testWriter(log.writer, bob);
      expect(await other.append(1)).toBe(4);
      expect(await other.append(2)).toBe(6);
      expect((await log.writer.lastOf(alice))?.seq).toBe(3);
    });

    test("exactly one of two writers of a source wins, every time", async () => {
      await using log = await open();
      let last = 0;
      for (let round = 1; round <= 50; round++) {
        const outcomes = await Promise.all(
          ["w1", "w2"].map((writer) =>
            log.writer.publish(
              alice,
              writer,
              upTo(1 + (round % 3)).map((n) => testMessage(alice, n)),
              last,
            ),
          ),
        );
        expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["acknowledged", "wrong-sequence"]);
        last = outcomes.reduce((seq, o) => (o.outcome === "acknowledged" ? o.lastSeq : seq), last);
      }
    });

    test.each([
      { title: "nothing", messages: [] },
      { title: "more than 1,000 messages", messages: upTo(1_001).map((n) => testMessage(alice, n)) },
      { title: "more than 4 MiB together", messages: [large(2.1), large(2.1)] },
      { title: "one message above 7.9 MiB", messages: [large(7.95)] },
    ])("$title cannot be published", async ({ messages }) => {
      await using log = await open();
      await expect(log.writer.publish(alice, "w1", messages, 0)).rejects.toThrow(RangeError);
      expect((await log.reader.bounds()).lastOffset).toBe(logStart);
    });

    test("one message of 7.8 MiB fits and is read back", async () => {
      await using log = await open();
      const message = large(7.8);
      expect(acknowledged(await log.writer.publish(alice, "w1", [message], 0))).toBe(1);
      acknowledged(await log.writer.publish(alice, "w1", [testMessage(alice, 2)], 1));
      expect((await log.writer.lastOf(alice))?.seq).toBe(2);
      const [first] = await take(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(2), never), 2);
      expect(first && encodeEvent(first.event).byteLength).toBe(message.event.byteLength);
    });
  });

  describe(`${name}: asking`, () => {
    test("bounds, last match and first since", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice);
      const b = testWriter(log.writer, bob);
      await a.append(3);
      await b.append(2, { channel: "v2" });
      expect(await log.reader.bounds()).toEqual({ firstOffset: offsetOf(1), lastOffset: endOf(5) });
      expect(await log.reader.lastMatch([sourceFilter(alice)])).toBe(endOf(3));
      expect(await log.reader.lastMatch([sourceFilter(alice), channelFilter(bob, "v2")])).toBe(endOf(5));
      expect(await log.reader.lastMatch([channelFilter(bob, "v1")])).toBe(endOf(0));
      expect(await log.reader.lastMatch([])).toBe(endOf(5));
      const third = (await take(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(5), never), 3))[2];
      expect(await log.reader.firstSince(new Date(0))).toBe(offsetOf(1));
      expect(await log.reader.firstSince(third?.recordedAt ?? new Date())).toBeLessThanOrEqual(offsetOf(3));
      expect(await log.reader.firstSince(new Date(Date.now() + 3_600_000))).toBeUndefined();
      // Further away than a clock of nanoseconds reaches.
      expect(await log.reader.firstSince(new Date("2999-01-01T00:00:00Z"))).toBeUndefined();
      expect(await log.reader.firstSince(new Date("0001-01-01T00:00:00Z"))).toBe(offsetOf(1));
    });
  });

  describe(`${name}: history`, () => {
    test("gives the matching events between its ends, in order, and stops", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice);
      const b = testWriter(log.writer, bob);
      for (let round = 0; round < 40; round++) {
        await a.append(10);
        await b.append(5, { channel: "v2", kind: "deploy.started" });
      }
      const all = seqs(
        await Array.fromAsync(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(600), never)),
      );
      expect(all).toEqual(upTo(600));
      expect(
        seqs(await Array.fromAsync(log.reader.history({ afterOffset: endOf(100), subjects: [] }, endOf(400), never))),
      ).toEqual(upTo(400, 101));
      const ofBob = await Array.fromAsync(
        log.reader.history({ afterOffset: logStart, subjects: [sourceFilter(bob)] }, endOf(600), never),
      );
      expect(ofBob.map(({ event }) => Number(event.ordinal))).toEqual(upTo(200));
      const both = [sourceFilter(bob), channelFilter(bob, "v2"), channelFilter(alice, "v1")];
      expect(
        seqs(await Array.fromAsync(log.reader.history({ afterOffset: logStart, subjects: both }, endOf(600), never))),
      ).toEqual(upTo(600));
      expect(
        await Array.fromAsync(
          log.reader.history({ afterOffset: logStart, subjects: [channelFilter(bob, "v9")] }, endOf(600), never),
        ),
      ).toEqual([]);
    });

    test("ends when its signal aborts", async () => {
      await using log = await open();
      await testWriter(log.writer, alice).append(1_000);
      const abort = new AbortController();
      let seen = 0;
      for await (const { offset } of log.reader.history(
        { afterOffset: logStart, subjects: [] },
        endOf(1_000),
        abort.signal,
      )) {
        seen = sequenceOf(offset);
        if (seen === 10) abort.abort();
      }
      expect(seen).toBe(10);
    });
  });

  describe(`${name}: following`, () => {
    test("gives history, says that it has caught up, then gives new events", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice);
      await a.append(5);
      const abort = new AbortController();
      const told: (number | string)[] = [];
      const reading = (async () => {
        const options = { signal: abort.signal, caughtUp: (end: Offset) => void told.push(`caught up ${end}`) };
        for await (const { offset } of log.reader.follow({ afterOffset: endOf(2), subjects: [] }, options)) {
          told.push(sequenceOf(offset));
        }
      })();
      await until(() => told.includes(`caught up ${endOf(5)}`), { message: "the follower to catch up" });
      await a.append(1);
      await a.append(2);
      await until(() => told.length === 7, { message: "the new events" });
      abort.abort();
      await reading;
      expect(told).toEqual([3, 4, 5, `caught up ${endOf(5)}`, 6, 7, 8]);
    });

    test("a follower of an empty log has caught up at once", async () => {
      await using log = await open();
      const abort = new AbortController();
      const caughtUp = Promise.withResolvers<Offset>();
      const first = take(
        log.reader.follow(
          { afterOffset: logStart, subjects: [] },
          { signal: abort.signal, caughtUp: caughtUp.resolve },
        ),
        1,
      );
      expect(await caughtUp.promise).toBe(logStart);
      await testWriter(log.writer, alice).append(1);
      expect(seqs(await first)).toEqual([1]);
      abort.abort();
    });

    test("gives only events that match one of several filters", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice);
      const b = testWriter(log.writer, bob);
      const abort = new AbortController();
      const subjects = [channelFilter(alice, "v2"), sourceFilter(bob)];
      await a.append(2);
      await b.append(2);
      const reading = take(log.reader.follow({ afterOffset: logStart, subjects }, { signal: abort.signal }), 5);
      await a.append(2, { channel: "v2" });
      await a.append(2);
      await b.append(1);
      expect(seqs(await reading)).toEqual([3, 4, 5, 6, 9]);
    });

    test("waiting for the next event ends when the signal aborts", async () => {
      await using log = await open();
      const abort = new AbortController();
      const caughtUp = Promise.withResolvers<Offset>();
      const options = { signal: abort.signal, caughtUp: caughtUp.resolve };
      const events = log.reader.follow({ afterOffset: logStart, subjects: [] }, options);
      const next = events.next();
      await caughtUp.promise;
      abort.abort();
      expect(await next).toEqual({ done: true, value: undefined });
    });
  });

  function large(mebibytes: number): NewMessage {
    const bytes = Buffer.alloc(Math.floor(mebibytes * 1024 * 1024), 7);
    return testMessage(alice, 1, { original: Original.fromPartial({ type: "x", bytes }) });
  }
}
