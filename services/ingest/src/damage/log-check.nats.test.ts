import { jetstreamManager } from "@nats-io/jetstream";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { acknowledged, publishEach, testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import type { Fact } from "../normalize/fact.ts";
import { Numbering } from "../record/frames/numbering.ts";
import { openTestEnds } from "../testing/test-ends.ts";
import { checkLog, type LogCheckOptions } from "./log-check.ts";
import { droppedBy } from "./watch-damage.ts";

const source = sourceName({ workspace: "w", developer: "d", project: "p", upstream: "skaffold" });
const observed = { observedAt: { seconds: 1n, nanos: 0 } };

/** A log of its own, whose events are numbered as record does. */
async function harness(textTtl?: number) {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const nc = stack.adopt(await connect({ servers: nats.url }), (connection) => connection.close());
  const log = stack.use(await openLog(nc, { workspace: "w", syncKnown: true, timeoutMs: 20_000 }));
  const ends = stack.use(await openTestEnds(nc, { workspace: "w", epoch: log.epoch, everyMs: 1 }));
  const jsm = await jetstreamManager(nc);
  const numbers = new Numbering(source, undefined, textTtl === undefined ? undefined : { textTtl, channels: ["v2"] });
  numbers.begin("A");
  let lastSeq = 0;
  const reported = async (...kinds: readonly Fact["kind"][]) => {
    const all = kinds.flatMap((kind) => numbers.frame("v2", [{ kind, summary: "" }], undefined, observed));
    const events = all.map(({ written }) => written);
    lastSeq = await publishEach(log.writer, source, events, lastSeq);
  };
  /** They were in another log, which lost them. */
  const lostElsewhere = (...kinds: readonly Fact["kind"][]) =>
    numbers.frame(
      "v2",
      kinds.map((kind) => ({ kind, summary: "" })),
      undefined,
      observed,
    );
  /** In one message. */
  const reportedTogether = async (...kinds: readonly Fact["kind"][]) => {
    const all = kinds.flatMap((kind) => numbers.frame("v2", [{ kind, summary: "" }], undefined, observed));
    const events = all.map(({ written }) => written);
    lastSeq = acknowledged(await log.writer.publish(source, "w1", events, lastSeq));
  };
  const limit = async (limits: Parameters<typeof jsm.streams.update>[1]) => jsm.streams.update(streamOf("w"), limits);
  const check = (more: Partial<LogCheckOptions> = {}) => {
    const signal = AbortSignal.timeout(60_000);
    const pace = { rest: async () => {} };
    return checkLog({
      log,
      ends,
      dropped: () => droppedBy({ nats: nc, workspace: "w" }),
      rate: 1_000_000,
      pace,
      signal,
      ...more,
    });
  };
  /** `meanwhile` happens when the first message was read. */
  const checkWhile = (meanwhile: () => Promise<unknown>) =>
    check({
      log: {
        ...log,
        async *stored({ first, last, subjects }, signal) {
          if (first === 1) {
            yield* log.stored({ first, last: 1, subjects }, signal);
            await meanwhile();
          }
          yield* log.stored({ first: Math.max(first, 2), last, subjects }, signal);
        },
      },
    });
  const owned = stack.move();
  return {
    log,
    ends,
    jsm,
    reported,
    reportedTogether,
    lostElsewhere,
    limit,
    check,
    checkWhile,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const facts = (count: number) => Array.from({ length: count }, () => "build.started" as const);

it("text that expires while the log is read is not lost", async () => {
  await using on = await harness(1);
  await on.reported("build.started", "log.written", "build.started");
  const textIsDropped = () =>
    until(async () => (await on.jsm.streams.info(streamOf("w"))).state.messages === 2, { message: "the text to go" });
  expect(await on.checkWhile(textIsDropped)).toMatchObject({ holes: [], messages: 2 });
});

it("a source that is erased while the log is read has lost nothing", async () => {
  await using on = await harness();
  const other = sourceName({ workspace: "w", developer: "other", project: "p", upstream: "skaffold" });
  await testWriter(on.log.writer, other).append(1);
  await on.reported(...facts(3));
  const atEnd = { session: "A", ordinals: { v2: 3 }, frames: { v2: 3 } };
  const isErased = async () => {
    await on.ends.forget((one) => one === source);
    for (const seq of [4, 3, 2]) await on.jsm.streams.deleteMessage(streamOf("w"), seq);
  };
  on.ends.reached(source, 4, atEnd);
  expect(await on.checkWhile(isErased)).toMatchObject({ holes: [], places: [], messages: 1 });
  on.ends.reached(source, 4, atEnd);
  expect((await on.check())?.holes).toMatchObject([{ missing: [{ first: 1, last: 3 }] }]);
});

it("messages that are dropped on purpose while the log is read are not lost; those deleted otherwise are", async () => {
  await using on = await harness();
  await on.reported(...facts(20));
  const purged = await on.checkWhile(async () => {
    await on.ends.dropBefore(11);
    await on.jsm.streams.purge(streamOf("w"), { seq: 11 });
  });
  expect(purged).toMatchObject({ holes: [], messages: 11 });
  await on.jsm.streams.deleteMessage(streamOf("w"), 15);
  expect((await on.check())?.holes).toMatchObject([{ after: 14, before: 16 }]);
});

it("messages with several events are whole, and each event of one that is gone is missing", async () => {
  await using on = await harness(3_600);
  await on.reportedTogether(...facts(5));
  await on.reportedTogether("log.written", "log.written");
  await on.reportedTogether(...facts(7));
  await on.reported("build.started");
  expect(await on.check()).toMatchObject({ holes: [], messages: 4 });
  await on.jsm.streams.deleteMessage(streamOf("w"), 3);
  expect((await on.check())?.holes).toMatchObject([
    { after: 2, before: 4, missing: [{ first: 8, last: 14, events: 7 }] },
  ]);
});

it("messages that a limit drops are not lost, while the log is read and when the limit is taken away", async () => {
  await using on = await harness();
  await on.reported(...facts(20));
  expect(await on.checkWhile(() => on.limit({ max_msgs: 10 }))).toMatchObject({ holes: [], messages: 11 });
  await on.limit({ max_msgs: -1 });
  expect((await on.check())?.holes).toEqual([]);
});

it("a limit on each subject drops anywhere", async () => {
  await using on = await harness();
  await on.reported("log.written", "build.started", "build.succeeded", "build.started");
  await on.limit({ max_msgs_per_subject: 1 });
  expect(await on.check()).toMatchObject({ holes: [], messages: 2 });
  await on.limit({ max_msgs_per_subject: -1 });
  expect((await on.check())?.holes).toEqual([]);
  await on.reported(...facts(2));
  await on.jsm.streams.deleteMessage(streamOf("w"), 5);
  expect((await on.check())?.holes).toMatchObject([{ after: 4, before: 6 }]);
});

it("messages dropped before anybody said where the log begins are not lost; those that go later are", async () => {
  await using on = await harness();
  await on.reported(...facts(20));
  await on.jsm.streams.purge(streamOf("w"), { seq: 11 });
  expect(await on.check()).toMatchObject({ holes: [], messages: 10 });
  await on.jsm.streams.deleteMessage(streamOf("w"), 15);
  expect((await on.check())?.holes).toMatchObject([{ after: 14, before: 16 }]);
});

it("a beginning that was there when the log was first read is lost when it is gone", async () => {
  await using on = await harness();
  await on.reported(...facts(20));
  expect(await on.check()).toMatchObject({ holes: [], messages: 20 });
  await on.jsm.streams.purge(streamOf("w"), { seq: 11 });
  expect((await on.check())?.holes).toMatchObject([{ after: undefined, before: 11 }]);
});

it("reads no more messages a second than it may", async () => {
  await using on = await harness();
  await on.reported(...facts(250));
  const began = performance.now();
  expect(await on.check({ rate: 500 })).toMatchObject({ holes: [], messages: 250 });
  // The clock is read after 200 messages for the last time.
  expect(performance.now() - began).toBeGreaterThan(390);
});

it("a check keeps the pace of maintenance from one hundred messages to the next", async () => {
  await using on = await harness();
  await on.reported(...facts(210));
  let rests = 0;
  const pace = {
    async rest(workedMs: number) {
      expect(workedMs).toBeGreaterThan(0);
      rests++;
    },
  };
  expect(await on.check({ pace })).toMatchObject({ holes: [], messages: 210 });
  expect(rests).toBe(2);
});

it("the place of a hole is known until the log has its messages again; where the log begins is no hole", async () => {
  await using on = await harness();
  await on.reported(...facts(10));
  const without = (...gone: readonly number[]) => ({
    log: {
      ...on.log,
      async *stored(...range: Parameters<typeof on.log.stored>) {
        for await (const message of on.log.stored(...range)) if (!gone.includes(message.seq)) yield message;
      },
    },
  });
  const places = async (...gone: readonly number[]) => (await on.check(without(...gone)))?.places;
  expect(await places(4, 5, 8)).toEqual([
    { source, sessions: ["A"], first: 4, last: 5 },
    { source, sessions: ["A"], first: 8, last: 8 },
  ]);
  expect(await places()).toEqual([]);
  // The log begins behind them.
  for (const seq of [1, 2]) await on.jsm.streams.deleteMessage(streamOf("w"), seq);
  expect((await on.check())?.holes).toHaveLength(1);
  expect(await places()).toEqual([]);
});

it("events that are missing without a gap of sequences are an empty hole before the next message", async () => {
  await using on = await harness();
  await on.reported(...facts(3));
  on.lostElsewhere(...facts(2));
  await on.reported(...facts(2));
  expect(await on.check()).toMatchObject({
    holes: [{ after: 3, before: 4, missing: [{ first: 4, last: 5 }] }],
    places: [{ source, sessions: ["A"], first: 4, last: 3 }],
  });
});
