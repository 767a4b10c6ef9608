import { Original } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { encodeEvent } from "../events/codec.ts";
import { sourceName } from "../source.ts";
import { acknowledged, newEvent, testWriter } from "../testing/log-messages.ts";
import { until } from "../testing/until.ts";
import type { LogReader, LogSurvey, LogWriter, NewEvent, RecordedEvent } from "./log.ts";
import { endOf, justBefore, logStart, type Offset, offsetOf, sequenceOf } from "./offset.ts";
import { channelFilter, eventSubject, lifecycleSubjects, sourceFilter } from "./subjects.ts";

export type LogUnderTest = AsyncDisposable & { readonly writer: LogWriter; readonly reader: LogReader & LogSurvey };

export async function take(events: AsyncIterable<RecordedEvent>, count: number): Promise<readonly RecordedEvent[]> {
  const taken: RecordedEvent[] = [];
  if (count === 0) return taken;
  for await (const recorded of events) if (taken.push(recorded) === count) break;
  return taken;
}

const offsets = (events: readonly RecordedEvent[]) => events.map(({ offset }) => offset);
const inOrder = (...written: readonly (readonly Offset[])[]) => written.flat().sort((a, b) => a - b);
/** How many events a message holds. */
const sizes = [1, 3, 64];
const upTo = (end: number, from = 1) => Array.from({ length: end - from + 1 }, (_, i) => from + i);
const never = new AbortController().signal;
const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const bob = sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" });

/** What every implementation of the log must do. Each call of `open` gives an empty log. */
export function logContract(name: string, open: () => Promise<LogUnderTest>): void {
  it(`${name}: single events are read in the order asked for, without those that are not there`, async () => {
    await using log = await open();
    await testWriter(log.writer, alice).append(40);
    const history = await take(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(40), never), 40);
    const [there, removed] = [
      [40, 3, ...upTo(30, 10)].map((seq) => offsetOf(seq)),
      [offsetOf(77), offsetOf(3, 1), endOf(4)],
    ];
    const read = await Array.fromAsync(log.reader.read([...removed, ...there], never));
    expect(read).toEqual(there.map((offset) => history[sequenceOf(offset) - 1]));
    expect(await Array.fromAsync(log.reader.read([], never))).toEqual([]);
  });

  it(`${name}: many events are read by their messages, of each those that were asked for`, async () => {
    await using log = await open();
    const { append, written } = testWriter(log.writer, alice, { perMessage: 5 });
    await append(200);
    const requests = written.filter((_, index) => index % 7 === 0 || index % 11 === 0);
    const missing = [offsetOf(3, 5), offsetOf(77)];
    const batches = await Array.fromAsync(log.reader.readBatches([...requests, ...missing], never));
    expect(batches.flat().map(({ offset }) => offset)).toEqual(requests);
    expect(batches.map((batch) => new Set(batch.map(({ offset }) => sequenceOf(offset))).size)).toEqual(
      batches.map(() => 1),
    );
    expect(new Set(requests.map(sequenceOf)).size).toBe(batches.length);
    expect(batches.flat().map((held) => held.decode()?.offset)).toEqual(requests);
    expect(await Array.fromAsync(log.reader.readBatches(requests, AbortSignal.abort()))).toEqual([]);
  });

  describe(`${name}: writing`, () => {
    it("a source without messages has no last message", async () => {
      await using log = await open();
      expect(await log.writer.lastOf(alice)).toBeUndefined();
      expect(await log.reader.bounds()).toEqual({
        firstOffset: offsetOf(1),
        lastOffset: logStart,
        messages: 0,
        bytes: 0,
      });
    });

    it("its clock is the clock of its events, even before the first one", async () => {
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

    it.each([1, 2, 1_024])("%i events land together as one message and advance writer and cursor", async (count) => {
      await using log = await open();
      const events = upTo(count).map((ordinal) => newEvent(alice, ordinal));
      expect(await log.writer.publish(alice, "w1", events, 0)).toEqual({ outcome: "acknowledged", seq: 1 });
      expect(await log.writer.lastOf(alice)).toEqual({
        seq: 1,
        mark: { writer: "w1", cursor: { session: "s", ordinals: { v1: count }, frames: { v1: count } } },
      });
      const read = await Array.fromAsync(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(1), never));
      expect(offsets(read)).toEqual(upTo(count).map((ordinal) => offsetOf(1, ordinal - 1)));
      expect(read.map(({ event }) => Number(event.ordinal))).toEqual(upTo(count));
    });

    it.each([1, 3])("%i events with a stale expectation change nothing", async (count) => {
      await using log = await open();
      await testWriter(log.writer, alice).append(2);
      const events = upTo(count).map((ordinal) => newEvent(alice, ordinal));
      expect(await log.writer.publish(alice, "w2", events, 1)).toEqual({ outcome: "wrong-sequence" });
      expect((await log.writer.lastOf(alice))?.mark.writer).toBe("w1");
      expect(await log.reader.bounds()).toMatchObject({ firstOffset: offsetOf(1), lastOffset: endOf(2), messages: 2 });
    });

    it("sources do not affect each other", async () => {
      await using log = await open();
      await testWriter(log.writer, alice).append(3);
      const other = testWriter(log.writer, bob);
      expect(await other.append(1)).toBe(4);
      expect(await other.append(2)).toBe(6);
      expect((await log.writer.lastOf(alice))?.seq).toBe(3);
    });

    it("exactly one of two writers of a source wins, every time", async () => {
      await using log = await open();
      let last = 0;
      for (let round = 1; round <= 50; round++) {
        const outcomes = await Promise.all(
          ["w1", "w2"].map((writer) =>
            log.writer.publish(
              alice,
              writer,
              upTo(1 + (round % 3)).map((n) => newEvent(alice, n)),
              last,
            ),
          ),
        );
        expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["acknowledged", "wrong-sequence"]);
        last = outcomes.reduce((seq, o) => (o.outcome === "acknowledged" ? o.seq : seq), last);
      }
    });

    it.each([
      { title: "nothing", events: [] },
      { title: "more than 1,024 events", events: upTo(1_025).map((n) => newEvent(alice, n)) },
      { title: "events of two sessions", events: [newEvent(alice, 1), newEvent(alice, 2, { session: "t" })] },
      {
        title: "Tapedeck's own events and an upstream's",
        events: [newEvent(alice, 1, { channel: "tapedeck" }), newEvent(alice, 2)],
      },
      {
        title: "facts, which stay, and text, which goes",
        events: [newEvent(alice, 1), { ...newEvent(alice, 2), ttlSeconds: 9 }],
      },
      { title: "more than 7.9 MiB", events: [large(7.95)] },
      { title: "more than 7.9 MiB together", events: [large(4), large(4)] },
    ])("$title cannot be one message", async ({ events }) => {
      await using log = await open();
      await expect(log.writer.publish(alice, "w1", events, 0)).rejects.toThrow(RangeError);
      expect((await log.reader.bounds()).lastOffset).toBe(logStart);
    });

    it("one event of 7.8 MiB fits and is read back", async () => {
      await using log = await open();
      const event = large(7.8);
      expect(acknowledged(await log.writer.publish(alice, "w1", [event], 0))).toBe(1);
      acknowledged(await log.writer.publish(alice, "w1", [newEvent(alice, 2)], 1));
      expect((await log.writer.lastOf(alice))?.seq).toBe(2);
      const [first] = await take(log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(2), never), 2);
      expect(first && encodeEvent(first.event).byteLength).toBe(event.event.byteLength);
    });
  });

  describe(`${name}: asking`, () => {
    it("bounds, last match and first since", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice);
      const b = testWriter(log.writer, bob);
      await a.append(3);
      await b.append(2, { channel: "v2" });
      const { bytes, ...bounds } = await log.reader.bounds();
      expect(bounds).toEqual({ firstOffset: offsetOf(1), lastOffset: endOf(5), messages: 5 });
      expect(bytes).toBeGreaterThan(5);
      expect(await log.reader.lastMatch([sourceFilter(alice)])).toBe(endOf(3));
      expect(await log.reader.lastMatch([sourceFilter(alice), channelFilter(bob, "v2")])).toBe(endOf(5));
      expect(await log.reader.lastMatch([channelFilter(bob, "tapedeck")])).toBe(endOf(0));
      expect(await log.reader.lastMatch([eventSubject(bob, "v2", "log.written")])).toBe(endOf(5));
      expect(await log.reader.lastMatch([eventSubject(alice, "v1", "session.ended")])).toBe(endOf(3));
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

  describe(`${name}: surveying`, () => {
    it("gives the last event of each of Tapedeck's own subjects", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice, { perMessage: 3 });
      const b = testWriter(log.writer, bob);
      await a.append(4, { channel: "tapedeck", kind: "session.started" });
      await b.append(1, { channel: "tapedeck", kind: "upstream.connected" });
      await a.append(2, { channel: "tapedeck", kind: "upstream.lost" });
      await a.append(2, { channel: "tapedeck", kind: "control.requested" });
      const lasts = await Array.fromAsync(log.reader.lastOfEach(lifecycleSubjects, never));
      expect(offsets(lasts)).toEqual([a.written[3], b.written[0], a.written[5]]);
    });
  });

  describe(`${name}: history`, () => {
    it.each(sizes)(
      "gives the matching events between its ends, in order, and stops: %i a message",
      async (perMessage) => {
        await using log = await open();
        const a = testWriter(log.writer, alice, { perMessage });
        const b = testWriter(log.writer, bob, { perMessage });
        for (let round = 0; round < 40; round++) {
          await a.append(10);
          await b.append(5, { channel: "v2", kind: "deploy.started" });
        }
        const { lastOffset } = await log.reader.bounds();
        const read = async (afterOffset: Offset, subjects: readonly string[], until = lastOffset) =>
          offsets(await Array.fromAsync(log.reader.history({ afterOffset, subjects }, until, never)));
        const all = inOrder(a.written, b.written);
        expect(await read(logStart, [])).toEqual(all);
        expect(await read(all[99] ?? logStart, [], all[399])).toEqual(all.slice(100, 400));
        const ofBob = log.reader.history({ afterOffset: logStart, subjects: [sourceFilter(bob)] }, lastOffset, never);
        expect((await Array.fromAsync(ofBob)).map(({ event }) => Number(event.ordinal))).toEqual(upTo(200));
        expect(await read(logStart, [sourceFilter(bob), channelFilter(bob, "v2"), channelFilter(alice, "v1")])).toEqual(
          all,
        );
        expect(await read(logStart, [eventSubject(bob, "v2", "deploy.failed")])).toEqual(b.written);
        expect(await read(logStart, [channelFilter(bob, "v9")])).toEqual([]);
        expect(await read(logStart, [eventSubject(alice, "v1", "deploy.started")])).toEqual([]);
      },
    );

    it("begins and ends at every index in a message", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice, { perMessage: 5 });
      const b = testWriter(log.writer, bob, { perMessage: 5 });
      await a.append(5);
      await b.append(5);
      await a.append(3);
      const ofBoth = inOrder(a.written, b.written);
      const ends = [logStart, ...ofBoth, endOf(1), endOf(2), endOf(3)];
      for (const after of ends) {
        for (const until of ends) {
          const from = { afterOffset: after, subjects: [] };
          const read = offsets(await Array.fromAsync(log.reader.history(from, until, never)));
          expect(read, `after ${after}, until ${until}`).toEqual(ofBoth.filter((one) => one > after && one <= until));
        }
        const from = { afterOffset: after, subjects: [sourceFilter(bob)] };
        const read = offsets(await Array.fromAsync(log.reader.history(from, endOf(3), never)));
        expect(read).toEqual(b.written.filter((one) => one > after));
      }
    });

    it("text among facts is found, and facts among text", async () => {
      await using log = await open();
      const kinds = ["log.written", "build.started", "log.written"];
      const mixed = kinds.map((kind, index) => newEvent(alice, index + 1, { kind }));
      acknowledged(await log.writer.publish(alice, "w1", mixed, 0));
      acknowledged(await log.writer.publish(alice, "w1", [newEvent(alice, 4, { kind: "log.written" })], 1));
      const read = async (kind: string) => {
        const from = { afterOffset: logStart, subjects: [eventSubject(alice, "v1", kind)] };
        return offsets(await Array.fromAsync(log.reader.history(from, endOf(2), never)));
      };
      expect(await read("log.written")).toEqual([offsetOf(1, 0), offsetOf(1, 2), offsetOf(2)]);
      expect(await read("build.started")).toEqual([offsetOf(1, 1)]);
      expect(await log.reader.lastMatch([eventSubject(alice, "v1", "build.started")])).toBe(endOf(1));
    });

    it("one message gives the events that match, whatever stands beside them", async () => {
      await using log = await open();
      const kinds = ["build.started", "deploy.started", "build.failed", "build.started"];
      const events = kinds.map((kind, index) =>
        newEvent(alice, index + 1, { kind, channel: index === 3 ? "v2" : "v1" }),
      );
      acknowledged(await log.writer.publish(alice, "w1", events, 0));
      const read = async (...subjects: readonly string[]) =>
        offsets(await Array.fromAsync(log.reader.history({ afterOffset: logStart, subjects }, endOf(1), never)));
      expect(await read(eventSubject(alice, "v1", "build.started"))).toEqual([offsetOf(1, 0), offsetOf(1, 2)]);
      expect(await read(channelFilter(alice, "v2"))).toEqual([offsetOf(1, 3)]);
      expect(await read(channelFilter(alice, "v2"), eventSubject(alice, "v1", "deploy.started"))).toEqual([
        offsetOf(1, 1),
        offsetOf(1, 3),
      ]);
    });

    it("ends when its signal aborts", async () => {
      await using log = await open();
      const end = await testWriter(log.writer, alice, { perMessage: 3 }).append(1_000);
      const abort = new AbortController();
      let seen = 0;
      for await (const _ of log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(end), abort.signal)) {
        if (++seen === 10) abort.abort();
      }
      expect(seen).toBe(10);
    });
  });

  describe(`${name}: following`, () => {
    it.each(sizes)(
      "gives history, says that it has caught up, then gives new events: %i a message",
      async (perMessage) => {
        await using log = await open();
        const a = testWriter(log.writer, alice, { perMessage });
        const end = endOf(await a.append(5));
        const after = a.written[1] ?? logStart;
        const abort = new AbortController();
        const reported: (number | string)[] = [];
        const reading = (async () => {
          const options = { signal: abort.signal, caughtUp: (end: Offset) => void reported.push(`caught up ${end}`) };
          for await (const { offset } of log.reader.follow({ afterOffset: after, subjects: [] }, options)) {
            reported.push(offset);
          }
        })();
        await until(() => reported.includes(`caught up ${end}`), { message: "the follower to catch up" });
        await a.append(1);
        await a.append(200);
        await until(() => reported.length === 205, { message: "the new events" });
        abort.abort();
        await reading;
        expect(reported).toEqual([...a.written.slice(2, 5), `caught up ${end}`, ...a.written.slice(5)]);
      },
    );

    it("begins at every index in a message, in history and live", async () => {
      await using log = await open();
      const a = testWriter(log.writer, alice, { perMessage: 4 });
      await a.append(4);
      const abort = new AbortController();
      const follow = (afterOffset: Offset, count: number) =>
        take(log.reader.follow({ afterOffset, subjects: [] }, { signal: abort.signal }), count);
      const live = follow(endOf(1), 5);
      await until(async () => (await follow(logStart, 4)).length === 4, { message: "the tail to be open" });
      await a.append(4);
      await a.append(1);
      expect(offsets(await live)).toEqual(a.written.slice(4));
      for (const first of a.written) {
        const rest = a.written.filter((one) => one >= first);
        expect(offsets(await follow(justBefore(first), rest.length))).toEqual(rest);
      }
      abort.abort();
    });

    it("a follower of an empty log has caught up at once", async () => {
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
      expect(offsets(await first)).toEqual([offsetOf(1)]);
      abort.abort();
    });

    it.each(sizes)("gives only events that match one of several filters: %i a message", async (perMessage) => {
      await using log = await open();
      const a = testWriter(log.writer, alice, { perMessage });
      const b = testWriter(log.writer, bob, { perMessage });
      const abort = new AbortController();
      const subjects = [channelFilter(alice, "v2"), sourceFilter(bob)];
      await a.append(2);
      await b.append(2);
      const reading = take(log.reader.follow({ afterOffset: logStart, subjects }, { signal: abort.signal }), 5);
      await a.append(2, { channel: "v2" });
      await a.append(2);
      await b.append(1);
      expect(offsets(await reading)).toEqual(inOrder(a.written.slice(2, 4), b.written));
      abort.abort();
    });

    it("waiting for the next event ends when the signal aborts", async () => {
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

  function large(mebibytes: number): NewEvent {
    const bytes = Buffer.alloc(Math.floor(mebibytes * 1024 * 1024), 7);
    return newEvent(alice, 1, { original: Original.fromPartial({ type: "x", bytes }) });
  }
}
