import { rename } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { describe, expect, it } from "vitest";
import { TapedeckError } from "../errors/errors.ts";
import { sourceName } from "../source.ts";
import { incompressible, testWriter } from "../testing/log-messages.ts";
import { startTestNats } from "../testing/nats.ts";
import { connectThroughRestarts } from "../testing/nats-connection.ts";
import { testStream, testWorkspace } from "../testing/test-log.ts";
import { until } from "../testing/until.ts";
import { openLog } from "./jetstream.ts";
import type { RecordedEvent } from "./log.ts";
import { endOf, logStart, offsetOf, sequenceOf } from "./offset.ts";
import { formatPosition } from "./position.ts";
import { sourceFilter } from "./subjects.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

/** A log of its own, and a second connection whose tail keeps few events. */
async function harness(ring = { entries: 8, bytes: 1024 * 1024 }) {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const nc = stack.adopt(await connectThroughRestarts(nats.url), (one) => one.close());
  const log = stack.use(await openLog(nc, { workspace: testWorkspace, syncKnown: true, timeoutMs: 3_000, ring }));
  const jsm = await jetstreamManager(nc);
  const over = new AbortController();
  stack.defer(() => over.abort());
  const writer = testWriter(log.writer, source);
  const owned = stack.move();
  return {
    nats,
    nc,
    log,
    jsm,
    signal: over.signal,
    append: writer.append,
    limit: (limits: Parameters<typeof jsm.streams.update>[1]) => jsm.streams.update(testStream, limits),
    position: (sequence: number) => formatPosition({ epoch: log.epoch, offset: endOf(sequence) }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Reads until `count` events have come, and then on request. */
function slowly(events: AsyncGenerator<RecordedEvent, void>) {
  const got: number[] = [];
  return {
    got,
    async take(count: number): Promise<void> {
      for (let taken = 0; taken < count; taken++) {
        const { value, done } = await events.next();
        if (done === true || value === undefined) return;
        got.push(sequenceOf(value.offset));
      }
    },
    /** Rejects with the error that ends it. */
    async rest(): Promise<void> {
      for await (const { offset } of events) got.push(sequenceOf(offset));
    },
  };
}

const through = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, at) => first + at);

async function errorOf(reading: Promise<unknown>): Promise<TapedeckError> {
  const error = await reading.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof TapedeckError)) throw new Error("expected an error of Tapedeck's", { cause: error });
  return error;
}

describe.each([
  { what: "max_msgs", limits: { max_msgs: 20 } },
  { what: "max_bytes", limits: { max_bytes: 6_000 } },
  { what: "max_age", limits: { max_age: 1 } },
])("when $what drops what a reader has not read", ({ what, limits }) => {
  /** With max_age all goes, and something has to follow. */
  async function drop(on: Awaited<ReturnType<typeof harness>>): Promise<number> {
    if (what === "max_age") {
      await on.limit({ max_age: 100_000_000, duplicate_window: 100_000_000 });
      const isDropped = async () => (await on.jsm.streams.info(testStream)).state.messages === 0;
      await until(isDropped, { message: "all messages to be dropped" });
      await on.limit({ max_age: 3_600_000_000_000 });
      await testWriter(on.log.writer, source).append(3);
    } else await on.limit(limits);
    const { first_seq } = (await on.jsm.streams.info(testStream)).state;
    expect(first_seq).toBeGreaterThan(400);
    return first_seq;
  }

  it.each(["all", "the source's"])(
    "a follower of %s events that is behind gets out_of_range, and goes on after it",
    async (which) => {
      await using on = await harness();
      const subjects = which === "all" ? [] : [sourceFilter(source)];
      await on.append(500);
      const follower = slowly(on.log.reader.follow({ afterOffset: logStart, subjects }, { signal: on.signal }));
      await follower.take(10);
      const first = await drop(on);
      const { last_seq } = (await on.jsm.streams.info(testStream)).state;
      const error = await errorOf(follower.rest());
      expect(error).toMatchObject({ code: "out_of_range", details: { earliest: on.position(first - 1) } });
      const last = follower.got.at(-1) ?? 0;
      expect(follower.got).toEqual(through(last));
      expect(last).toBeLessThan(first - 1);
      const again = slowly(on.log.reader.follow({ afterOffset: endOf(first - 1), subjects }, { signal: on.signal }));
      await again.take(last_seq - first + 1);
      expect(again.got).toEqual(through(last_seq, first));
    },
  );

  it("a reader of history gets it, in the middle and at the beginning", async () => {
    await using on = await harness();
    await on.append(500);
    const read = (afterOffset: typeof logStart) =>
      slowly(on.log.reader.history({ afterOffset, subjects: [] }, endOf(500), on.signal));
    const reader = read(logStart);
    await reader.take(10);
    const first = await drop(on);
    expect(await errorOf(reader.rest())).toMatchObject({ code: "out_of_range" });
    expect(reader.got).toEqual(through(reader.got.length));
    const late = read(endOf(30));
    const error = await errorOf(late.rest());
    expect([late.got, error.message]).toEqual([
      [],
      `position ${on.position(30)} is no longer available: continue after ${on.position(first - 1)}; earlier events are lost`,
    ]);
    await expect(on.log.reader.assertRetained(endOf(30))).rejects.toThrow(error.message);
    const page = on.log.reader.pages.history({ afterOffset: endOf(30), subjects: [] }, endOf(500), on.signal);
    expect((await errorOf(Array.fromAsync(page))).message).toBe(error.message);
  });

  it("a reader from the log's start begins with what there is", async () => {
    await using on = await harness();
    await on.append(500);
    const first = await drop(on);
    const { last_seq } = (await on.jsm.streams.info(testStream)).state;
    for (const subjects of [[], [sourceFilter(source)]]) {
      const reader = slowly(on.log.reader.history({ afterOffset: logStart, subjects }, endOf(last_seq), on.signal));
      await reader.rest();
      expect(reader.got).toEqual(through(last_seq, first));
    }
  });
});

it("a follower at the end is not passed over when the log drops what it could not deliver", async () => {
  await using on = await harness();
  await on.append(10);
  const follower = slowly(on.log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: on.signal }));
  await follower.take(10);
  // The other connection's tail is cut off meanwhile.
  const other = await connect({ servers: on.nats.url });
  await using elsewhere = await openLog(other, { workspace: testWorkspace, syncKnown: true });
  await on.nc.reconnect();
  const publishing = testWriter(
    elsewhere.writer,
    sourceName({ workspace: "acme", developer: "bob", project: "p", upstream: "rkt" }),
  );
  await (await jetstreamManager(other)).streams.update(testStream, { max_msgs: 5 });
  await publishing.append(200);
  const outcome = await follower.rest().then(
    () => "complete",
    (error: unknown) => error,
  );
  // Whatever came before the error is without a hole.
  expect(follower.got).toEqual(through(follower.got.length));
  expect(outcome).toMatchObject({ code: "out_of_range" });
  await other.close();
});

it("erased and expired messages are nobody's loss, at the beginning of the log neither", async () => {
  await using on = await harness();
  await on.append(100);
  const follower = slowly(on.log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: on.signal }));
  await follower.take(10);
  for (const seq of [...through(40), ...through(70, 60)]) await on.jsm.streams.deleteMessage(testStream, seq);
  while (follower.got.at(-1) !== 100) await follower.take(1);
  // The first pull had 64.
  expect(follower.got.filter((seq) => seq > 64)).toEqual(through(100, 71));
});

it("a purge is seen by the first message that is left: no source begins without source.added", async () => {
  await using on = await harness();
  await on.append(100, { channel: "tapedeck", kind: "source.checkpoint", session: "" });
  const follower = slowly(on.log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: on.signal }));
  await follower.take(10);
  await on.jsm.streams.purge(testStream, { seq: 90 });
  expect(await errorOf(follower.rest())).toMatchObject({
    code: "out_of_range",
    details: { earliest: on.position(89) },
  });
  expect(follower.got).toEqual(through(follower.got.length));
});

it("a file that is missing while nats-server runs is an error with a way on, and ends no reader as complete", async () => {
  await using on = await harness();
  // Files of 8 MB.
  await on.append(60, incompressible(500_000));
  // A server that has just started has no file in memory.
  await on.nats.restart();
  await until(() => on.log.reader.bounds(), { message: "the log to be back" });
  await rename(join(on.nats.streamFolder(testStream), "2.blk"), join(on.nats.dataDir, "2.blk"));
  const readers = [
    () => on.log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(60), on.signal),
    () => on.log.reader.history({ afterOffset: logStart, subjects: [sourceFilter(source)] }, endOf(60), on.signal),
    () => on.log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: on.signal }),
    () => on.log.reader.pages.history({ afterOffset: logStart, subjects: [] }, endOf(60), on.signal),
  ];
  for (const open of readers) {
    const reader = slowly(open());
    const error = await errorOf(reader.rest());
    expect(error).toMatchObject({ code: "out_of_range", message: expect.stringContaining("restart nats-server") });
    const last = reader.got.length;
    expect(reader.got).toEqual(through(last));
    const earliest = through(60).find((seq) => on.position(seq) === error.details.earliest) ?? 0;
    expect(earliest).toBeGreaterThan(last);
    const after = slowly(
      on.log.reader.history({ afterOffset: offsetOf(earliest, 1_023), subjects: [] }, endOf(60), on.signal),
    );
    await after.rest();
    expect(after.got).toEqual(through(60, earliest + 1));
  }
  // A check of the log passes it, and compares the neighbours.
  const stored: number[] = [];
  for await (const { seq } of on.log.stored({ first: 1, last: 60, subjects: [] }, on.signal)) stored.push(seq);
  expect(stored.at(-1)).toBe(60);
  expect(stored.length).toBeLessThan(60);
});
