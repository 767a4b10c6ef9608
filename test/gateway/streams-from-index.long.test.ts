import { setImmediate } from "node:timers/promises";
import { indexedLog } from "@tapedeck/gateway/apis/tapedeck/log-index/indexed-log";
import type { SubscriptionMessage } from "@tapedeck/gateway/apis/tapedeck/messages";
import { type Subscription, subscribe } from "@tapedeck/gateway/apis/tapedeck/subscribe";
import { type QueryClient, queryClient } from "@tapedeck/gateway/query-client";
import type { Query } from "@tapedeck/query/query";
import { type Random, randomEvents, seeded } from "@tapedeck/query/testing/random-scenario";
import { scenario } from "@tapedeck/query/testing/scenario";
import { type Stage, servicesKey, stage } from "@tapedeck/query/testing/stage";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type Filter, matches, parseFilter } from "@tapedeck/shared/filter/filter";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { afterAll, expect, it } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";

// History of a stream with a filter comes from query's index of the log as far as that reaches, and from the log after it.

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

const filters: readonly Filter[] = [
  { kinds: ["loop.failed"] },
  { kinds: ["build.*"], developers: ["alice"] },
  { kinds: ["log.written", "*.failed"] },
  { kinds: ["*"] },
  { subjects: ["web"] },
  { subjects: ["nobody"] },
  { outcomes: ["failed"] },
  { sessions: ["acme-bob-shop-skaffold-1"] },
  { sessions: ["acme-alice-shop-skaffold-1"], kinds: ["build.failed"] },
];

/** Query on the stage's log, which is stopped and started while it is asked. */
class Index {
  readonly #on: Stage;
  #query: Query | undefined;
  #client: QueryClient | undefined;
  answers = 0;
  failures = 0;

  constructor(on: Stage) {
    this.#on = on;
  }

  async start(): Promise<void> {
    this.#query = await this.#on.startQuery();
    this.#client = queryClient(this.#query.address, servicesKey, 20_000);
  }

  async stop(): Promise<void> {
    await this.#query?.[Symbol.asyncDispose]();
  }

  get position(): Offset {
    return this.#query?.positionOf("acme") ?? logStart;
  }

  async findEvents(request: Parameters<QueryClient["findEvents"]>[0]) {
    try {
      const answer = await this.#client?.findEvents(request);
      if (answer === undefined) throw new Error("not started");
      this.answers++;
      return answer;
    } catch (error) {
      // A stream has the log, whatever the reason.
      throw this.failures++ % 2 === 0 ? error : new TapedeckError("internal", "internal error", {}, { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#client?.[Symbol.asyncDispose]();
  }
}

type Reader = { readonly request: Subscription; readonly got: SubscriptionMessage[]; readonly done: Promise<void> };

/** Opens streams of all filters from anywhere, with pages and short histories of a few events. */
function readersFrom(on: Stage, index: Index, written: readonly Offset[], random: Random, signal: AbortSignal) {
  return filters.map((filter): Reader => {
    const anywhere = () => written[random(written.length)] ?? logStart;
    const afterOffset = random(2) === 0 ? logStart : anywhere();
    const untilOffset = random(3) === 0 ? anywhere() : undefined;
    const bookmarks = { ms: 0, messages: 4 };
    const request = { workspace: "acme", filter, afterOffset, bookmarks, ...(untilOffset && { untilOffset }) };
    const limits = { shortHistory: 1 + random(8), pageSize: 1 + random(30) };
    const reader = indexedLog(on.log.reader, index, request, limits);
    const got: SubscriptionMessage[] = [];
    const turns = random(4);
    const read = async () => {
      for await (const message of subscribe(reader, request, signal)) {
        got.push(message);
        for (let turn = 0; turn < turns; turn++) await setImmediate();
      }
    };
    return { request, got, done: read() };
  });
}

it("a stream with a filter is the stream without one, filtered, while query stops and starts and events come", async () => {
  await using on = await stage();
  await using index = new Index(on);
  const random = seeded(31);
  const script = randomEvents(random, 3_600).filter(
    ({ kind, source }) => kind !== "session.erased" && source.startsWith("acme/"),
  );
  const written: Offset[] = [];
  const record = async (count: number) => {
    written.push(...(await on.writeTogether(script.splice(0, count), 1 + random(6))));
  };
  const over = new AbortController();
  const open = () => readersFrom(on, index, written, random, over.signal);
  const readers: Reader[] = [];
  const recording = async () => {
    for (let part = 0; part < 8; part++) await record(30);
  };

  await record(1_000);
  await index.start();
  // Its checkpoint moves while they read.
  readers.push(...open());
  await recording();
  await until(() => index.position >= (written.at(-1) ?? 0), { message: "query to have it all" });
  const before = index.answers;
  readers.push(...open());
  await until(() => index.answers > before + 20, { message: "some pages of the index" });
  await Promise.all([index.stop(), recording()]);
  readers.push(...open());
  await until(() => index.failures > 0, { message: "query to be asked in vain" });
  await Promise.all([index.start(), recording()]);
  readers.push(...open());
  await record(script.length);

  const { lastOffset } = await on.log.reader.bounds();
  const all = await Array.fromAsync(
    on.log.reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, over.signal),
  );
  const unfiltered = await Array.fromAsync(
    subscribe(
      on.log.reader,
      { workspace: "acme", filter: {}, afterOffset: logStart, untilOffset: lastOffset },
      over.signal,
    ),
  );
  const jsonAt = new Map(unfiltered.map(({ position, json }) => [position, json]));
  for (const { request, got, done } of readers) {
    const expected = all
      .filter((recorded) => isExpected(request, recorded))
      .map(({ offset }) => jsonAt.get(on.written(offset)));
    const events = () => got.filter(({ type }) => type === "event").map(({ json }) => json);
    if (request.untilOffset === undefined) {
      await until(() => events().length >= expected.length && got.some(({ type }) => type === "caught_up"), {
        message: `all events of ${JSON.stringify(request)}`,
      });
      // All of it, though the last events may not be wanted.
      const [end, last] = [on.written(lastOffset), unfiltered.findLast(({ type }) => type === "event")?.json];
      const isAtEnd = ({ position, json }: SubscriptionMessage) => position >= end || json === last;
      await until(() => got.slice(-1).some(isAtEnd), { message: `the end of ${JSON.stringify(request)}` });
    } else await done;
    expect(events(), JSON.stringify(request)).toEqual(expected);
    const ends = got.map(({ type }) => type).filter((type) => type === "caught_up" || type === "complete");
    expect(ends).toEqual([request.untilOffset === undefined ? "caught_up" : "complete"]);
    const inOrder = got.map(({ position }) => position);
    expect(inOrder).toEqual(inOrder.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
  }
  over.abort();
  await Promise.all(readers.map(({ done }) => done));
});

it("a stream reports what the index has passed, and goes on after its last event where the log can't be read", async () => {
  await using on = await stage();
  await using index = new Index(on);
  const random = seeded(32);
  const script = randomEvents(random, 900).filter(({ kind }) => kind !== "session.erased");
  const offsets = await on.writeTogether(script, 4);
  await index.start();
  await until(() => index.position >= (offsets.at(-1) ?? 0), { message: "query to have it all" });
  const over = new AbortController();
  const follow = (reader: LogReader, filter: Filter) => {
    const request = { workspace: "acme", filter, afterOffset: logStart, bookmarks: { ms: 0, messages: 10_000 } };
    const got: SubscriptionMessage[] = [];
    const read = async () => {
      const indexed = indexedLog(reader, index, request, { shortHistory: 10, pageSize: 30 });
      for await (const message of subscribe(indexed, request, over.signal)) got.push(message);
    };
    return { got, done: read() };
  };

  // This log says nothing of its own.
  async function* silent() {
    await new Promise((resolve) => over.signal.addEventListener("abort", resolve));
  }
  const nothing = follow({ ...on.log.reader, followBatches: silent }, { subjects: ["nobody"] });
  await until(() => nothing.got.length > 0, { message: "a bookmark" });
  expect(nothing.got.map(({ type, position }) => [type, position])).toEqual([["bookmark", on.written(index.position)]]);

  let batches = 0;
  const readBatches: LogReader["readBatches"] = async function* (...request) {
    for await (const batch of on.log.reader.readBatches(...request)) {
      if (++batches === 5) throw new Error("the log is unavailable");
      yield batch;
    }
  };
  const failed = parseFilter({ kinds: ["build.failed"] });
  const broken = follow({ ...on.log.reader, readBatches }, failed);
  await until(() => broken.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
  expect(batches).toBe(5);
  const expected = script.flatMap((event, index) =>
    event.source.startsWith("acme/") && matches(failed, event) ? [on.written(offsets[index] ?? logStart)] : [],
  );
  expect(expected.length).toBeGreaterThan(5);
  expect(broken.got.filter(({ type }) => type === "event").map(({ position }) => position)).toEqual(expected);
  over.abort();
  await Promise.all([nothing.done, broken.done]);
});

function isExpected({ workspace, filter, afterOffset, untilOffset }: Subscription, { event, offset }: RecordedEvent) {
  return (
    event.source.startsWith(`${workspace}/`) &&
    offset > afterOffset &&
    offset <= (untilOffset ?? offset) &&
    matches(filter, event)
  );
}

it("a rare kind is read by as many messages as have it", async () => {
  const on = cleanup.use(await startSeededStack());
  const script = scenario();
  const session = script.session("01A1");
  session.started();
  session.configured();
  for (let part = 0; part < 5; part++) {
    session.loopStarted();
    for (let index = 0; index < 150; index++) {
      session.build("web", "started");
      session.build("web", "succeeded");
    }
    session.build("api", "started");
    session.build("api", "failed");
  }
  await on.seed(script.events);
  expect(script.events.length).toBeGreaterThan(1_500);
  const nats = cleanup.adopt(await connect({ servers: on.stack.parts.nats.url }), (nc) => nc.close());
  const requests: string[] = [];
  const watch = nats.subscribe("$JS.API.>", { callback: (_error, { subject }) => void requests.push(subject) });
  await nats.flush();
  // Those of the log; the gateway reads beside it what the log has lost.
  const isOfLog = (subject: string) => subject.split(".").includes(streamOf("acme"));
  const reads = (what: string) =>
    requests.filter((subject) => subject.startsWith(`$JS.API.${what}`) && isOfLog(subject)).length;

  const lines = async (more: string) => {
    const { body } = await on.stack.httpCall("GET", `/api/v1/stream?after=start&until=now${more}`, {
      accept: "application/x-ndjson",
    });
    return body
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => (JSON.parse(line) as { type: string }).type);
  };
  expect(await lines("&kind=build.failed")).toEqual([...Array(5).fill("event"), "complete"]);
  expect([reads("DIRECT.GET"), reads("CONSUMER")]).toEqual([5, 0]);
  expect(await lines("&subject=nobody")).toEqual(["complete"]);
  expect([reads("DIRECT.GET"), reads("CONSUMER")]).toEqual([5, 0]);
  // Without a filter the log is read message by message.
  expect((await lines("")).length).toBe(script.events.length + 1);
  expect(reads("DIRECT.GET")).toBe(5);
  expect(reads("CONSUMER")).toBeGreaterThan(0);
  watch.unsubscribe();
});
