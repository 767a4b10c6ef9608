import { matches } from "@tapedeck/shared/filter/filter";
import { openLog } from "@tapedeck/shared/log/jetstream";
import type { LogReader } from "@tapedeck/shared/log/log";
import { endOf, logStart, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { endPosition, eventPosition, seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import type { SubscriptionMessage } from "./messages.ts";
import { subscribe } from "./subscribe.ts";

const sourceOf = (developer: string) =>
  sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" });

const seqOf = (message: SubscriptionMessage | undefined) => seqIn(message?.position);
const seqs = (messages: readonly SubscriptionMessage[], type?: string) =>
  messages.filter((message) => type === undefined || message.type === type).map(seqOf);
const reported = (message: SubscriptionMessage) => `${message.type} ${seqOf(message)}`;

async function harness({ perMessage = 1 } = {}) {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const log = stack.use(await openLog(connection, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
  const over = new AbortController();
  stack.defer(() => over.abort());
  const owned = stack.move();
  return {
    alice: testWriter(log.writer, sourceOf("alice"), { perMessage }),
    bob: testWriter(log.writer, sourceOf("bob"), { perMessage }),
    written: (offset: Offset) => formatPosition({ epoch: log.epoch, offset }),
    at: (seq: number) => eventPosition(log.epoch, seq),
    endAt: (seq: number) => endPosition(log.epoch, seq),
    over,
    reader: log.reader,
    /** What a subscriber gets, as it comes. */
    open(filter: object, ms: number, more: { readonly messages?: number; readonly untilOffset?: Offset } = {}) {
      const got: SubscriptionMessage[] = [];
      const { messages = 10_000, ...end } = more;
      const request = { workspace: "default", filter, afterOffset: logStart, bookmarks: { ms, messages }, ...end };
      const read = async () => {
        for await (const message of subscribe(log.reader, request, over.signal)) got.push(message);
      };
      return { got, done: read() };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

it("bookmarks show the progress of a subscriber, though nothing matched its filter", async () => {
  await using on = await harness();
  await on.alice.append(2);
  // By subject the server leaves out what does not match; by `subjects` we do.
  const [bySubject, byUs] = [on.open({ developers: ["alice"] }, 0), on.open({ subjects: ["web"] }, 0)];
  await until(() => bySubject.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
  await until(() => byUs.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
  const last = await on.bob.append(3);
  for (const { got } of [bySubject, byUs]) {
    await until(() => seqIn(got.at(-1)?.position) === last, { message: "the bookmark" });
    const { position } = got.at(-1) ?? {};
    expect(got.at(-1)).toMatchObject({ type: "bookmark", json: `{"type":"bookmark","position":"${position}"}` });
    const seqs = got.map(({ position }) => seqIn(position));
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  }
});

it("an end in the future is the log's, however other clocks go, and what comes after it is not given", async () => {
  await using on = await harness();
  await on.alice.append(2);
  const untilTime = new Date(Date.now() + 200);
  const clock = { at: new Date(0), readings: 0 };
  const reader: LogReader = {
    ...on.reader,
    async now() {
      clock.readings += 1;
      return { at: clock.at, lastOffset: (await on.reader.bounds()).lastOffset };
    },
  };
  const open = (afterOffset: Offset) => {
    const got: SubscriptionMessage[] = [];
    const request = {
      workspace: "default",
      filter: {},
      afterOffset,
      untilTime,
      bookmarks: { ms: 3_600_000, messages: 1e6 },
    };
    const read = async () => {
      for await (const message of subscribe(reader, request, on.over.signal)) got.push(message);
    };
    return { got, done: read() };
  };
  const [first, second] = [open(logStart), open(endOf(2))];
  await until(() => first.got.length === 3 && second.got.length === 1, { message: "caught_up" });
  // The time has passed for us, and not for the log.
  await until(() => Date.now() > untilTime.getTime(), { message: "the time to pass" });
  const before = clock.readings;
  await until(() => clock.readings > before + 1, { message: "the log's clock to be asked" });
  expect(first.got.map(reported)).toEqual(["event 1", "event 2", "caught_up 2"]);
  clock.at = new Date(untilTime.getTime() + 1);
  await Promise.all([first.done, second.done]);
  expect(second.got.map(reported)).toEqual(["caught_up 2", "complete 2"]);

  // An event that is recorded later shows it as well.
  clock.at = new Date(0);
  const third = open(logStart);
  await until(() => third.got.length === 3, { message: "caught_up" });
  await on.bob.append(1);
  await third.done;
  expect(third.got.map(reported)).toEqual(["event 1", "event 2", "caught_up 2", "complete 2"]);
});

it("a bookmark comes in its time, though the log has come to rest before", async () => {
  await using on = await harness();
  const { got } = on.open({ subjects: ["web"] }, 200);
  await until(() => got.length === 1, { message: "caught_up" });
  const last = await on.alice.append(3);
  // On a slow machine an earlier one may come while the events still do.
  await until(() => got.at(-1)?.position === on.endAt(last), { message: "the bookmark" });
  expect(new Set(got.slice(1).map(({ type }) => type))).toEqual(new Set(["bookmark"]));
});

it("and after so many events, however fast they came", async () => {
  await using on = await harness();
  const web = { subject: "web" };
  await on.alice.append(125);
  await on.alice.append(1, web); // 126
  await on.bob.append(100);
  await on.alice.append(1, web); // 227
  await on.bob.append(3);
  // At the end of a batch, which has up to 32 events, and before an event.
  const most = 10 + 31;
  for (const filter of [{ subjects: ["web"] }, { subjects: ["web"], developers: ["alice"] }]) {
    const live = on.open(filter, 3_600_000, { messages: 10 });
    await until(() => live.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
    const ended = on.open(filter, 3_600_000, { messages: 10, untilOffset: endOf(230) });
    await ended.done;
    for (const [{ got }, end] of [[live, "caught_up 230"] as const, [ended, "complete 230"] as const]) {
      expect(got.filter(({ type }) => type !== "bookmark").map(reported)).toEqual(["event 126", "event 227", end]);
      const upTo = filter.developers === undefined ? 227 : 126;
      const given = [0, ...seqs(got).filter((seq) => seq <= upTo)];
      const gaps = given.slice(1).map((seq, index) => seq - (given[index] ?? 0));
      expect(Math.min(...gaps)).toBeGreaterThan(0);
      expect(Math.max(...gaps)).toBeLessThanOrEqual(most);
    }
  }
  const live = on.open({ subjects: ["web"], developers: ["alice"] }, 3_600_000, { messages: 10 });
  await until(() => live.got.at(-1)?.type === "caught_up", { message: "caught_up" });
  const received = live.got.length;
  await on.bob.append(10);
  await until(() => live.got.length > received, { message: "the bookmark" });
  await on.alice.append(1, web);
  await until(() => live.got.length > received + 1, { message: "the event" });
  expect(live.got.slice(received).map(reported)).toEqual(["bookmark 240", "event 241"]);
});

it.each([1, 5])(
  "a bookmark is never ahead of an event that was not given, at any pace: %i a message",
  async (perMessage) => {
    await using on = await harness({ perMessage });
    const writing = (async () => {
      for (let round = 0; round < 60; round++) {
        await on.alice.append(1 + (round % 3), round % 2 === 0 ? { subject: "web" } : {});
        await on.bob.append(round % 7 === 0 ? 30 : 1);
      }
    })();
    const readers = [{ developers: ["bob"] }, { subjects: ["web"] }, { subjects: ["nothing"] }].map((filter, index) => {
      const request = {
        workspace: "default",
        filter,
        afterOffset: logStart,
        bookmarks: { ms: index, messages: 4 },
      };
      const got: SubscriptionMessage[] = [];
      const read = async () => {
        for await (const message of subscribe(on.reader, request, on.over.signal)) {
          got.push(message);
          for (let turns = Math.random() * 10; turns > 1; turns--) await new Promise(setImmediate);
        }
      };
      return { got, filter, done: read() };
    });
    await writing;
    // A reader that caught up only now has had no reason for a bookmark yet.
    const haveBookmarks = async () => {
      if (readers.every(({ got }) => seqs(got, "bookmark").length > 0)) return true;
      // Nobody wants it.
      await on.alice.append(1);
      return false;
    };
    await until(haveBookmarks, { message: "a bookmark for each reader" });
    const { lastOffset } = await on.reader.bounds();
    const all = await Array.fromAsync(
      on.reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, on.over.signal),
    );
    for (const { got, filter } of readers) {
      await until(() => seqOf(got.at(-1)) >= sequenceOf(lastOffset) - 4, { message: "all of it" });
      const expected = all.filter(({ event }) => matches(filter, event)).map(({ offset }) => on.written(offset));
      await until(() => seqs(got, "event").length === expected.length, { message: "the last event" });
      expect(got.filter(({ type }) => type === "event").map(({ position }) => position)).toEqual(expected);
      // Positions sort as text.
      const inOrder = got.map(({ position = "" }) => position);
      expect(inOrder).toEqual(inOrder.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    }
    on.over.abort();
    await Promise.all(readers.map(({ done }) => done));
  },
);

it("a reader that leaves, wherever, leaves the log as well", async () => {
  await using on = await harness();
  await on.alice.append(3);
  let open = 0;
  const watched = (reader: LogReader): LogReader => ({
    ...reader,
    async *follow(from, options) {
      open++;
      try {
        yield* reader.follow(from, options);
      } finally {
        open--;
      }
    },
  });
  for (const filter of [{}, { subjects: ["none"] }]) {
    const request = { workspace: "default", filter, afterOffset: logStart };
    for await (const _ of subscribe(watched(on.reader), request, on.over.signal)) break;
    await until(() => open === 0, { message: "the reader to be over" });
  }
});

it("but not more often than every so often", async () => {
  await using on = await harness();
  const { got, done } = on.open({ developers: ["alice"] }, 3_600_000);
  await until(() => got.length === 1, { message: "caught_up" });
  for (let n = 0; n < 10; n++) await on.bob.append(1);
  const last = await on.alice.append(1);
  await until(() => got.length === 2, { message: "the event" });
  expect(got.map(({ type, position }) => [type, position])).toEqual([
    ["caught_up", endPosition(on.reader.epoch, 0)],
    ["event", on.at(last)],
  ]);
  on.over.abort();
  await done;
});

it("a live event is rendered once for all who follow", async () => {
  await using on = await harness();
  const readers = [
    on.open({}, 5_000),
    on.open({ developers: ["alice"] }, 5_000),
    on.open({ kinds: ["build.*"] }, 5_000),
  ];
  await until(() => readers.every(({ got }) => got.length === 1), { message: "all to have caught up" });
  await on.alice.append(1);
  await until(() => readers.every(({ got }) => got.length === 2), { message: "the event" });
  expect(new Set(readers.map(({ got }) => got[1])).size).toBe(1);
});
