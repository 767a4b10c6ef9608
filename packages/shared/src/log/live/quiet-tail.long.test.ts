import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "nats";
import { it } from "vitest";
import type { SourceName } from "../../source.ts";
import { testWriter } from "../../testing/log-messages.ts";
import { lossyProxy } from "../../testing/lossy-proxy.ts";
import { connectThroughRestarts } from "../../testing/nats-connection.ts";
import { startTestLog, testSources, testStream } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import { endOf } from "../offset.ts";
import { messageReader } from "../reading/decode.ts";
import { openTail, type Tail, type TailDeps } from "./tail.ts";

const [alice] = testSources as [SourceName];
const warn = () => {};
const never = 1_000_000_000;

// They sleep for most of a minute each, at the same time.

/** Resolves when the tail has come to the end of the log, and the server has no consumer of it any more. */
async function asleep(tail: Tail, nc: NatsConnection): Promise<void> {
  const { streams } = await jetstreamManager(nc);
  const consumers = async () => (await streams.info(testStream)).state.consumer_count;
  await until(() => tail.now(), { message: "the tail to have reached the log" });
  await until(async () => (await consumers()) > 0, { message: "the tail to follow" });
  await until(async () => (await consumers()) === 0, { message: "the tail to sleep" });
}

async function quietTail(nc: NatsConnection, deps: Pick<TailDeps, "epoch" | "checkMs">): Promise<Tail> {
  const jsm = await jetstreamManager(nc);
  return openTail({
    nc,
    jsm,
    streamName: testStream,
    timeoutMs: 60_000,
    readMessage: messageReader(warn),
    warn,
    ...deps,
  });
}

it.concurrent("a tail to which nothing comes has no consumer, and wakes with the next event", async () => {
  await using log = await startTestLog();
  const writer = testWriter(log.writer, alice);
  await writer.append(1);
  await using tail = await quietTail(log.nc, { epoch: log.epoch, checkMs: never });
  await asleep(tail, log.nc);
  await writer.append(1);
  await until(() => tail.now()?.last === endOf(2), { message: "the event to be read" });
});

it.concurrent("a tail that sleeps gets what was written while it was cut off", async () => {
  await using log = await startTestLog();
  await using proxy = await lossyProxy(Number(new URL(`nats://${log.nc.getServer()}`).port));
  await using stack = new AsyncDisposableStack();
  const cut = stack.adopt(await connectThroughRestarts(`127.0.0.1:${proxy.port}`), (nc) => nc.close());
  const writer = testWriter(log.writer, alice);
  await writer.append(1);
  await using tail = await quietTail(cut, { epoch: log.epoch, checkMs: never });
  await asleep(tail, log.nc);
  proxy.deaf = true;
  await writer.append(1);
  proxy.cut();
  proxy.deaf = false;
  await until(() => tail.now()?.last === endOf(2), { message: "the event to be read" });
});

it.concurrent("a tail that sleeps finds what it did not hear of", async () => {
  await using log = await startTestLog();
  await using proxy = await lossyProxy(Number(new URL(`nats://${log.nc.getServer()}`).port));
  await using stack = new AsyncDisposableStack();
  const deaf = stack.adopt(await connect({ servers: `127.0.0.1:${proxy.port}` }), (nc) => nc.close());
  const writer = testWriter(log.writer, alice);
  await writer.append(1);
  await using tail = await quietTail(deaf, { epoch: log.epoch, checkMs: 500 });
  await asleep(tail, log.nc);
  proxy.deaf = true;
  await writer.append(1);
  proxy.deaf = false;
  await until(() => tail.now()?.last === endOf(2), { message: "the event to be read" });
});
