import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { endPosition, eventPosition } from "@tapedeck/shared/testing/positions";
import { expect, it } from "vitest";
import { timedSemaphore } from "../../limits/semaphore.ts";
import { positions } from "../../positions.ts";
import { eventsPage } from "./events-page.ts";
import type { EventFinder } from "./log-index/find-offsets.ts";

const MiB = 1 << 20;

/** A log of so many messages, whose events have a text of this size. `reads` gets the offsets of each reading. */
function texts(
  count: number,
  { bytes = MiB, reads = [] }: { bytes?: number; reads?: Offset[][] } = {},
): () => LogReader {
  const text = "x".repeat(bytes);
  const event = Event.fromPartial({
    source: "default/alice/shop/skaffold",
    kind: "log.written",
    detail: { $case: "text", value: { text } },
  });
  const at = (offset: Offset): RecordedEvent => ({ offset, recordedAt: new Date(0), subject: "", event });
  const reader: Pick<LogReader, "epoch" | "formerEpochs" | "bounds" | "history" | "read"> = {
    epoch: "t",
    formerEpochs: [],
    bounds: async () => ({ firstOffset: offsetOf(1), lastOffset: endOf(count), messages: count, bytes: 0 }),
    async *history({ afterOffset }, untilOffset): AsyncGenerator<RecordedEvent, void> {
      for (let seq = sequenceOf(afterOffset) + 1; seq <= sequenceOf(untilOffset); seq++) {
        yield at(offsetOf(seq));
      }
    },
    async *read(offsets) {
      reads.push([...offsets]);
      for (const offset of offsets) yield at(offset);
    },
  };
  return () => reader as LogReader;
}

const to = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index);
const line = (atOnce = 1) => timedSemaphore({ atOnce, timeoutMs: 20, what: "pages of events" });
const { signal } = new AbortController();
const request = { workspace: "default", filter: {}, after: "start", limit: 1_000, signal };

const away: EventFinder = {
  async findEvents() {
    throw new TapedeckError("not_ready", "query is away");
  },
};

function pageOf(count: number, inTurn = line(), query = away) {
  const log = texts(count);
  return eventsPage({ log, positions: positions(log), query, holes: () => [] }, inTurn);
}

it("a page with much text in it ends early, and another follows", async () => {
  const { items, nextPage } = await pageOf(20)(request);
  expect([items.length, nextPage]).toEqual([16, eventPosition("t", 16)]);
});

it("a page that ends with the last event is followed by none", async () => {
  for (const [count, limit] of [
    [16, 1_000],
    [3, 3],
  ] as const) {
    const { items, nextPage, position } = await pageOf(count)({ ...request, limit });
    expect([items.length, nextPage, position]).toEqual([count, undefined, endPosition("t", count)]);
  }
});

it("of the last events only those that match count", async () => {
  const { items } = await pageOf(40)({ ...request, last: 10 });
  expect(items.map(({ position }) => position)).toEqual(
    Array.from({ length: 10 }, (_, index) => eventPosition("t", 31 + index)),
  );
  await expect(pageOf(40)({ ...request, last: 20 })).rejects.toMatchObject({
    code: "limit_exceeded",
    details: { field: "last" },
  });
});

it("the last events are as many as fit, if asked for so, and the page says that it has fewer", async () => {
  const { items, isCut } = await pageOf(40)({ ...request, last: 20, orFewer: true });
  const newest = Array.from({ length: 15 }, (_, index) => eventPosition("t", 26 + index));
  expect([items.map(({ position }) => position), isCut]).toEqual([newest, true]);
  expect((await pageOf(40)({ ...request, last: 10, orFewer: true })).isCut).toBeUndefined();
});

it("reads what query does not know yet from the log, and nothing that it knows", async () => {
  // All up to 30 were found to be of no interest, but for three, two of which share a message.
  const written = (offset: Offset) => formatPosition({ epoch: "t", offset });
  const known = {
    positions: [offsetOf(3, 1), offsetOf(3, 900), offsetOf(7, 2)].map(written),
    reached: endPosition("t", 30),
  };
  const query: EventFinder = { findEvents: async () => known };
  const page = pageOf(40, line(), query);
  const found = async (more: Partial<typeof request> & { last?: number }) =>
    (await page({ ...request, filter: { kinds: ["log.*"] }, ...more })).items.map(({ position }) => position);
  const later = Array.from({ length: 10 }, (_, index) => eventPosition("t", 31 + index));
  expect(await found({})).toEqual([...known.positions, ...later]);
  expect(await found({ last: 11 })).toEqual([...known.positions.slice(-1), ...later]);
  expect(await found({ last: 12 })).toEqual([...known.positions.slice(-2), ...later]);
  expect(await found({ last: 3 })).toEqual(later.slice(-3));
});

it.each([
  ["a few messages are read together", { messages: 3, each: 4 }, [[1, 2, 3]]],
  [
    "many messages are read in turns, the last ones first",
    { messages: 40, each: 1 },
    [to(25, 40), to(9, 24), to(1, 8)],
  ],
  ["one message are read in turns where they are many", { messages: 1, each: 600 }, [[1], [1], [1]]],
])("the last events, in %s", async (_what, { messages, each }, turns) => {
  const reads: Offset[][] = [];
  const log = texts(messages, { reads, bytes: 1 });
  const offsets = to(1, messages).flatMap((sequence) => to(0, each - 1).map((index) => offsetOf(sequence, index)));
  const query: EventFinder = {
    findEvents: async ({ until }) => ({
      positions: offsets.map((offset) => formatPosition({ epoch: "t", offset })).filter((one) => one <= until),
      reached: endPosition("t", messages),
    }),
  };
  const page = eventsPage({ log, positions: positions(log), query, holes: () => [] }, line());
  const { items } = await page({ ...request, filter: { kinds: ["log.*"] }, last: offsets.length });
  expect(items).toHaveLength(offsets.length);
  expect(reads.map((read) => [...new Set(read.map(sequenceOf))])).toEqual(turns);
});

it("does not take the positions of another log's tables", async () => {
  const known = { positions: [eventPosition("other", 3)], reached: endPosition("other", 30) };
  const query: EventFinder = { findEvents: async () => known };
  const { items } = await pageOf(5, line(), query)({ ...request, filter: { kinds: ["log.*"] } });
  expect(items).toHaveLength(5);
});

it("waits for its turn, and leaves it when it is made or has failed", async () => {
  const inTurn = line();
  const page = pageOf(1, inTurn);
  const end = await inTurn.acquire(signal);
  await expect(page(request)).rejects.toMatchObject({ code: "limit_exceeded", retryAfter: 1 });
  end();
  await page(request);
  await expect(page({ ...request, after: eventPosition("t", 99) })).rejects.toMatchObject({ code: "position_future" });
  expect((await page(request)).items).toHaveLength(1);
});
