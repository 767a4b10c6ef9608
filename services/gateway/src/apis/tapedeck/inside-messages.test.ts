import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { endOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestLog, testSources } from "@tapedeck/shared/testing/test-log";
import { afterAll, beforeAll, expect, it } from "vitest";
import { timedSemaphore } from "../../limits/semaphore.ts";
import { positions } from "../../positions.ts";
import { eventsPage } from "./events-page.ts";
import type { EventFinder } from "./log-index/find-offsets.ts";
import type { SubscriptionMessage } from "./messages.ts";
import { subscribe } from "./subscribe.ts";

/** Positions that point into a message with several events. */
const perMessage = 5;
const [alice, bob] = testSources as readonly [(typeof testSources)[number], (typeof testSources)[number]];

let log: Awaited<ReturnType<typeof startTestLog>>;
let all: readonly Offset[];
let lastSeq: number;

beforeAll(async () => {
  log = await startTestLog();
  const writers = [testWriter(log.writer, alice, { perMessage }), testWriter(log.writer, bob, { perMessage })] as const;
  for (const [index, count] of [7, 5, 3, 1, 10, 4].entries()) lastSeq = (await writers[index % 2]?.append(count)) ?? 0;
  all = writers.flatMap(({ written }) => written).toSorted((a, b) => a - b);
});
afterAll(() => log[Symbol.asyncDispose]());

const written = (offset: Offset) => formatPosition({ epoch: log.epoch, offset });
const { signal } = new AbortController();
const request = { workspace: "acme", filter: {}, signal };

const away: EventFinder = {
  async findEvents() {
    throw new TapedeckError("not_ready", "query is away");
  },
};

function pageOf() {
  const reader = () => log.reader;
  return eventsPage(
    { log: reader, positions: positions(reader), query: away, holes: () => [] },
    timedSemaphore({ atOnce: 1, timeoutMs: 60_000, what: "pages of events" }),
  );
}

it("pages of any size give every event once, and the last one is followed by none", async () => {
  for (let limit = 1; limit <= all.length + 1; limit++) {
    const seen: (string | undefined)[] = [];
    let pages = 0;
    for (let after: string | undefined = "start"; after !== undefined; pages++) {
      const page: Awaited<ReturnType<ReturnType<typeof pageOf>>> = await pageOf()({ ...request, after, limit });
      seen.push(...page.items.map(({ position }) => position));
      after = page.nextPage;
    }
    expect(seen).toEqual(all.map(written));
    expect(pages).toBe(Math.ceil(all.length / limit));
  }
});

it("a page and a subscription begin and end at every event", async () => {
  for (const [index, offset] of all.entries()) {
    const rest = all.slice(index + 1).map(written);
    const after = await pageOf()({ ...request, after: written(offset), limit: 1_000 });
    expect(after.items.map(({ position }) => position)).toEqual(rest);
    const upTo = await pageOf()({ ...request, after: "start", until: written(offset), limit: 1_000 });
    expect(upTo.items.map(({ position }) => position)).toEqual(all.slice(0, index + 1).map(written));
    expect(upTo.position).toBe(written(offset));
    const last = await pageOf()({ ...request, after: "start", limit: 1_000, last: index + 1 });
    expect(last.items.map(({ position }) => position)).toEqual(all.slice(-index - 1).map(written));

    const messages: SubscriptionMessage[] = [];
    const subscription = { workspace: "acme", filter: {}, afterOffset: offset, untilOffset: endOf(lastSeq) };
    for await (const message of subscribe(log.reader, subscription, signal)) messages.push(message);
    expect(messages.map(({ type, position }) => `${type} ${position}`)).toEqual([
      ...rest.map((position) => `event ${position}`),
      `complete ${written(endOf(lastSeq))}`,
    ]);
  }
});

it("a reader that resumes after anything that a subscription gave misses nothing", async () => {
  const filter = { developers: ["bob"] };
  const read = async (afterOffset: Offset) => {
    const got: SubscriptionMessage[] = [];
    const over = new AbortController();
    const bookmarks = { ms: 0, messages: 1 };
    const subscription = { workspace: "acme", filter, afterOffset, bookmarks };
    for await (const message of subscribe(log.reader, subscription, over.signal)) {
      got.push(message);
      if (message.type === "caught_up") over.abort();
    }
    return got;
  };
  const whole = await read(logStart);
  const events = whole.filter(({ type }) => type === "event").map(({ position }) => position);
  expect(events.length).toBeGreaterThan(5);
  expect(whole.some(({ type }) => type === "bookmark")).toBe(true);
  for (const { position = "" } of whole) {
    const resumed = await read(await positions(() => log.reader).resolveAfter(position));
    const rest = resumed.filter(({ type }) => type === "event").map((message) => message.position);
    expect(rest).toEqual(events.filter((event = "") => event > position));
  }
});
