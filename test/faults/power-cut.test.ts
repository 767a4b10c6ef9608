import { join } from "node:path";
import { startNatsServer } from "@tapedeck/infra/local/nats-server";
import { eventsIn } from "@tapedeck/shared/log/batch/batch";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { newEvent } from "@tapedeck/shared/testing/log-messages";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, inject, it } from "vitest";
import { NatsCluster } from "../cluster/nats-cluster.ts";
import { RunLogs } from "../cluster/run-logs.ts";
import { DiskWithoutPower } from "./disk-without-power.ts";

const workspace = "acme";
const sources = Array.from({ length: 20 }, (_, at) =>
  sourceName({ workspace, developer: `dev-${at}`, project: "shop", upstream: "skaffold" }),
);
const acknowledgements = 1_000;
const cannotMount = "no file system can be mounted here";

it("a power cut loses nothing that the bundled nats-server has acknowledged", async ({ skip }) => {
  await using cleanup = new AsyncDisposableStack();
  const disk = await DiskWithoutPower.create();
  if (disk === undefined) return skip(cannotMount);
  cleanup.use(disk);
  const elsewhere = cleanup.use(await temporaryFolder());
  const logFile = join(elsewhere.folder, "nats-server.log");
  const start = async () =>
    cleanup.use(
      await startNatsServer({ binary: inject("natsServer"), dataDir: join(disk.folder, "nats"), port: 0, logFile }),
    );
  const nats = await start();
  const published = await publishThrough(nats.url, 1, async () => {
    await disk.cut();
    await nats.kill("SIGKILL");
  });
  await disk.powerOn();
  expect(await lostOf((await start()).url, published)).toEqual([]);
});

it("a power cut of all three servers of a cluster loses nothing that was acknowledged", async ({ skip }) => {
  await using cleanup = new AsyncDisposableStack();
  const disk = await DiskWithoutPower.create();
  if (disk === undefined) return skip(cannotMount);
  cleanup.use(disk);
  const logs = cleanup.use(await RunLogs.make());
  const cluster = cleanup.use(await NatsCluster.start(disk.folder, { logs }));
  const published = await publishThrough(cluster.url, 3, async () => {
    await disk.cut();
    await Promise.all(cluster.names.map((name) => cluster.kill(name)));
  });
  await disk.powerOn();
  await Promise.all(cluster.names.map((name) => cluster.restart(name)));
  expect(await lostOf(cluster.url, published)).toEqual([]);
  logs.passed();
});

type Published = { readonly epoch: string; readonly acknowledged: ReadonlyMap<number, string> };

/** Publishes from all sources until the power is cut, and after that whatever is still answered. */
async function publishThrough(url: string, replicas: number, cut: () => Promise<void>): Promise<Published> {
  await using cleanup = new AsyncDisposableStack();
  const connection = cleanup.adopt(await connect({ servers: url.split(","), reconnect: false }), (nc) => nc.close());
  const log = cleanup.use(await openLog(connection, { workspace, replicas, syncKnown: true, waitMs: 60_000 }));
  const acknowledged = new Map<number, string>();
  const publishing = sources.map((source) => publishUntilRefused(log, source, acknowledged));
  await until(() => acknowledged.size >= acknowledgements, { message: "messages to be acknowledged" });
  await cut();
  await Promise.all(publishing);
  return { epoch: log.epoch, acknowledged };
}

/** The sequences of messages that were acknowledged and are not what the log has there. */
async function lostOf(url: string, { epoch, acknowledged }: Published): Promise<number[]> {
  await using cleanup = new AsyncDisposableStack();
  const connection = cleanup.adopt(await connect({ servers: url.split(",") }), (nc) => nc.close());
  const options = { workspace, create: false, syncKnown: true, waitMs: 60_000 };
  const log = cleanup.use(await openLog(connection, options));
  expect(log.epoch).toBe(epoch);
  const stored = await eventsOf(log);
  return [...acknowledged].filter(([seq, event]) => stored.get(seq) !== event).map(([seq]) => seq);
}

/** One message after the other, until one is not acknowledged. Keeps the event's bytes by the sequence of its message. */
async function publishUntilRefused(log: Log, source: SourceName, acknowledged: Map<number, string>): Promise<void> {
  for (let last = 0, ordinal = 1; ; ordinal++) {
    const event = newEvent(source, ordinal);
    const published = await log.writer.publish(source, "w1", [event], last);
    if (published.outcome !== "acknowledged") return;
    last = published.seq;
    acknowledged.set(last, hex(event.event));
  }
}

async function eventsOf(log: Log): Promise<ReadonlyMap<number, string>> {
  const last = sequenceOf((await log.reader.bounds()).lastOffset);
  const messages = await Array.fromAsync(log.stored({ first: 1, last, subjects: [] }, AbortSignal.timeout(60_000)));
  return new Map(messages.map(({ seq, data }) => [seq, [...eventsIn(data)].map(hex).join()]));
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
