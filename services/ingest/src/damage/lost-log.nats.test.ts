import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { renewEpoch } from "@tapedeck/shared/log/backup";
import { newStream, openLog } from "@tapedeck/shared/log/jetstream";
import { endOf, logStart, offsetOf } from "@tapedeck/shared/log/offset";
import { belongsToLog, formatPosition } from "@tapedeck/shared/log/position";
import { endsStream, streamOf } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { newEvent, testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { storesOn } from "../testing/opened-store.ts";
import { openTestEnds } from "../testing/test-ends.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

/** A log with 20 events, of which it is known beside it how far it has come. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const nc = stack.adopt(await connectThroughRestarts(nats.url), (one) => one.close());
  const jsm = await jetstreamManager(nc);
  let epoch = "";
  {
    await using log = await openLog(nc, { workspace: "acme", syncKnown: true });
    epoch = log.epoch;
    await testWriter(log.writer, source).append(20);
    await using ends = await openTestEnds(nc, { workspace: "acme", epoch });
    ends.reached(source, 20, newEvent(source, 20).cursor);
  }
  const description = join(nats.streamFolder(streamOf("acme")), "..", "meta.inf");
  /** While the server does not run. */
  const whileStopped = async (change: () => Promise<unknown>) => {
    await nats.stop();
    await change();
    await nats.restart();
    await until(() => jsm.getAccountInfo(), { message: "the server to be back" });
  };
  const owned = new AsyncDisposableStack();
  const on = {
    nats,
    nc,
    jsm,
    epoch,
    description,
    whileStopped,
    start: async () => {
      const stores = owned.use(await storesOn(nats.url));
      return stores.of("acme");
    },
    position: (sequence: number) => formatPosition({ epoch, offset: endOf(sequence) }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  owned.use(stack.move());
  return on;
}

it("a log whose description is damaged is not begun anew; the file brings it back", async () => {
  await using on = await harness();
  const whole = await readFile(on.description);
  await on.whileStopped(() => writeFile(on.description, Buffer.alloc(whole.byteLength)));
  await expect(on.start()).rejects.toThrow(
    `the nats-server has no log of the workspace "acme" (the stream TAPEDECK_LOG_acme), but events up to position ${on.position(20)} were recorded in it: its data are damaged or were deleted. Bring its files back (such as meta.inf) and start it again, restore a backup with \`tapedeck restore\`, or continue with what is left, under new positions, with \`tapedeck new-epoch\`.`,
  );
  await expect(on.jsm.streams.info(streamOf("acme"))).rejects.toThrow("not found");
  await on.whileStopped(() => writeFile(on.description, whole));
  const store = await on.start();
  expect(store?.log.epoch).toBe(on.epoch);
});

it("with new-epoch such a log goes on with its events and positions, over restarts", async () => {
  await using on = await harness();
  const { byteLength } = await readFile(on.description);
  await on.whileStopped(() => writeFile(on.description, Buffer.alloc(byteLength)));
  const { epoch, lastSeq, formerEpochs } = await renewEpoch(on.nc, "acme");
  expect([lastSeq, formerEpochs]).toEqual([20, [{ epoch: on.epoch, lastSeq: 20 }]]);
  await on.whileStopped(async () => {});
  const store = await on.start();
  const { reader } = store?.log ?? expect.fail("no log");
  expect(reader.epoch).toBe(epoch);
  const events = await Array.fromAsync(
    reader.history({ afterOffset: logStart, subjects: [] }, endOf(20), AbortSignal.timeout(60_000)),
  );
  expect(events).toHaveLength(20);
  expect(belongsToLog(reader, { epoch: on.epoch, offset: offsetOf(20) })).toBe(true);
});

it("a log that has taken the place of the one with the events is refused until new-epoch accepts it", async () => {
  await using on = await harness();
  await on.jsm.streams.delete(streamOf("acme"));
  await expect(on.start()).rejects.toThrow("the nats-server has no log");
  const { config } = await on.jsm.streams.add(newStream("acme", { replicas: 1 }));
  await expect(on.start()).rejects.toThrow(
    `the log (epoch ${config.metadata?.["tapedeck-epoch"]}) is not the one in which events up to position ${on.position(20)} were recorded. Restore that one with \`tapedeck restore\`, or continue with this one, under new positions, with \`tapedeck new-epoch\`.`,
  );
  await renewEpoch(on.nc, "acme");
  const store = await on.start();
  const { reader } = store?.log ?? expect.fail("no log");
  expect(belongsToLog(reader, { epoch: on.epoch, offset: offsetOf(1) })).toBe(false);
});

it("a new log begins where nothing is known of another one", async () => {
  await using on = await harness();
  for (const name of [streamOf("acme"), endsStream]) await on.jsm.streams.delete(name);
  const store = await on.start();
  expect(store?.log.epoch).not.toBe(on.epoch);
});
