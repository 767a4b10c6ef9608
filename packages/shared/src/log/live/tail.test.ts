import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { expect, it } from "vitest";
import type { SourceName } from "../../source.ts";
import { testWriter } from "../../testing/log-messages.ts";
import { startTestLog, testSources, testStream } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import { endOf, logStart, offsetOf } from "../offset.ts";
import type { PullRequest } from "../reading/consumer.ts";
import { messageReader, type ReadMessage } from "../reading/decode.ts";
import { type Gathering, openTail } from "./tail.ts";

const alice = testSources[0] as SourceName;
const warn = () => {};

type TailOptions = { lead?: () => number; read?: ReadMessage; gathering?: Gathering };

async function startTail({ lead, read = messageReader(warn), gathering }: TailOptions = {}) {
  const log = await startTestLog();
  const jsm = leading(await jetstreamManager(log.nc), lead ?? (() => 0));
  const { nc, epoch } = log;
  const tail = openTail({
    nc,
    jsm,
    streamName: testStream,
    epoch,
    timeoutMs: 60_000,
    readMessage: read,
    warn,
    gathering,
  });
  await until(() => tail.now(), { message: "the tail to have reached the log" });
  return {
    ...log,
    tail,
    async [Symbol.asyncDispose]() {
      await tail[Symbol.asyncDispose]();
      await log[Symbol.asyncDispose]();
    },
  };
}

/** What the leader of a cluster answers while the server that delivers has so many messages less. */
function leading({ streams, consumers }: JetStreamManager, lead: () => number): JetStreamManager {
  const answers = {
    info: async (name: string) => {
      const info = await streams.info(name);
      return { ...info, state: { ...info.state, last_seq: info.state.last_seq + lead() } };
    },
    getMessage: async (name: string, query: Parameters<typeof streams.getMessage>[1]) => {
      const message = await streams.getMessage(name, query);
      // What it has before the others can be read from it.
      if (message === null && lead() > 0 && "seq" in query) return { seq: query.seq };
      return message && { ...message, seq: message.seq + lead() };
    },
  };
  return { streams: answers, consumers } as unknown as JetStreamManager;
}

it("nothing is lost of what the leader has before the server that delivers", async () => {
  let lead = 0;
  await using log = await startTail({ lead: () => lead });
  const { tail } = log;
  const writer = testWriter(log.writer, alice);
  await writer.append(2);
  await until(() => tail.now()?.last === endOf(2), { message: "both to be read" });
  const reader = tail.watches.open([]);
  reader.arm();
  // What the leader has already comes to the other server only then.
  lead = 1;
  const again = reader.changed();
  const { consumers } = await jetstreamManager(log.nc);
  for await (const { name } of consumers.list(testStream)) await consumers.delete(testStream, name);
  await again;
  expect(tail.now()?.last).toBe(endOf(2));
  await writer.append(1);
  await until(() => tail.now()?.last === endOf(3), { message: "the third to be read" });
  expect(tail.now()?.ring.at(reader.next() ?? -1)?.offset).toBe(offsetOf(3));
});

it("an erasure decodes nothing but itself", async () => {
  let decoded = 0;
  const readHeld = messageReader(warn);
  const read: ReadMessage = (message) =>
    readHeld(message).map((held) => ({
      offset: held.offset,
      subject: held.subject,
      bytes: held.bytes,
      isShared: held.isShared,
      decode: () => {
        decoded++;
        return held.decode();
      },
    }));
  await using log = await startTail({ read });
  const writer = testWriter(log.writer, alice);
  await writer.append(20, { session: "gone" });
  const kept = await writer.append(1, { session: "kept" });
  const last = await writer.append(1, { session: "gone", channel: "tapedeck", kind: "session.erased" });
  const ring = await until(() => log.tail.now()?.last === endOf(last) && log.tail.now()?.ring, {
    message: "the erasure to be read",
  });
  const left = Array.from({ length: last }, (_, index) => ring.at(index)).filter((entry) => entry?.bytes !== undefined);
  expect(left.map((entry) => entry?.offset)).toEqual([kept, last].map((seq) => offsetOf(seq)));
  expect(decoded).toBe(1);
});

it("messages gather for a reader that may wait, until somebody waits for them", async () => {
  let wake = () => {};
  let isAwaited = false;
  const gathering: Gathering = {
    waitMs: () => 1_000_000,
    isAwaited: () => isAwaited,
    onAwaited: (listener) => {
      wake = listener;
    },
  };
  await using log = await startTail({ gathering });
  const { tail, nc } = log;
  let pulls = 0;
  nc.subscribe(`$JS.API.CONSUMER.MSG.NEXT.${testStream}.>`, { callback: () => void pulls++ });
  const { consumers } = await jetstreamManager(nc);
  const delivered = async () => (await consumers.list(testStream).next())[0]?.delivered.consumer_seq;
  const writer = testWriter(log.writer, alice);
  // More than one pull brings.
  await writer.append(1_100);
  await until(async () => (await delivered()) === 1, { message: "the first one to come" });
  expect(tail.now()?.last).toBe(logStart);
  pulls = 0;
  wake();
  await until(() => tail.now()?.last === endOf(1_100), { message: "all to be read" });
  await until(() => pulls === 3, { message: "the next one to be asked for" });
  isAwaited = true;
  await writer.append(1);
  await until(() => tail.now()?.last === endOf(1_101), { message: "what is waited for" });
});

it("messages gather for so long, and those that come next gather again", async () => {
  let waits = 0;
  const gathering: Gathering = {
    waitMs: () => {
      waits++;
      return 1;
    },
    isAwaited: () => false,
    onAwaited: () => {},
  };
  await using log = await startTail({ gathering });
  const writer = testWriter(log.writer, alice);
  for (const count of [1, 2, 3]) {
    await writer.append(1);
    await until(() => log.tail.now()?.last === endOf(count), { message: `message ${count}` });
    expect(waits).toBe(count);
  }
});

it("messages gather while every follower is patient, and come one by one as soon as one is not", async () => {
  await using log = await startTail();
  const { tail, nc } = log;
  const pulls: PullRequest[] = [];
  nc.subscribe(`$JS.API.CONSUMER.MSG.NEXT.${testStream}.>`, {
    callback: (_, msg) => void pulls.push(msg.json<PullRequest>()),
  });
  const newest = (batch: number) =>
    until(() => pulls.at(-1)?.batch === batch && !pulls.at(-1)?.no_wait, { message: `a pull of ${batch}` });
  tail.watches.open([], { isPatient: true });
  const writer = testWriter(log.writer, alice);
  await writer.append(2);
  await until(() => tail.now()?.last === endOf(2), { message: "what has gathered" });
  await newest(1);
  expect(pulls.some(({ no_wait }) => no_wait)).toBe(true);
  const impatient = tail.watches.open([]);
  await writer.append(1);
  await until(() => tail.now()?.last === endOf(3), { message: "a message at once" });
  await newest(1_000);
  tail.watches.close(impatient);
  await writer.append(1_000);
  await newest(1);
});
