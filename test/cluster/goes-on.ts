import { mkdtemp } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { projectUntil } from "@tapedeck/query/testing/run-projection";
import { contents, differencesOf } from "@tapedeck/query/testing/tables";
import type { Filter } from "@tapedeck/shared/filter/filter";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { expect, inject } from "vitest";
import {
  type ReceivedEvent,
  type Subscriber,
  sawTheLog,
  socketSubscriber,
  sseSubscriber,
} from "../faults/subscribers.ts";
import { Cluster } from "./cluster.ts";
import type { Fault } from "./faults.ts";
import { Load } from "./load.ts";
import { judged, longestDelivery, longestRecording, type Observed, type Span, tableOf } from "./observed.ts";
import { Prober } from "./prober.ts";
import { RunLogs } from "./run-logs.ts";

/** After a step every source must advance by so many frames. */
const framesAfterStep = 25;

/**
 * Runs two Skaffolds that the ingests dial, one that a laptop pushes, subscribers and readers, all through HAProxy,
 * while one fault after the other happens. Then compares each Skaffold's frames with the log, and the log with the
 * subscribers and the tables. Prints how long each fault had effects. `after` is the folder of a later version.
 */
export async function goesOnThrough(faults: readonly Fault[], after?: string): Promise<void> {
  if (faults.length === 0) return;
  await using cleanup = new AsyncDisposableStack();
  const logs = cleanup.use(await RunLogs.make());
  const dialled = [cleanup.use(await Load.start("alice")), cleanup.use(await Load.start("bob"))];
  const pushed = cleanup.use(await Load.start("carol"));
  const loads = [...dialled, pushed];
  const upstreams = dialled.map(({ developer, fake }) => ({ developer, project: "shop", address: fake.address }));
  const started = Date.now();
  const cluster = cleanup.use(await Cluster.start(upstreams, logs, after));
  console.log(`the cluster is ready after ${((Date.now() - started) / 1_000).toFixed(1)} s`);
  const { log, origin } = cluster;
  cleanup.use(await pushes(cluster, pushed, logs));

  const everything: Filter = { developers: loads.map(({ developer }) => developer) };
  const loops: Filter = { ...everything, kinds: ["build.*", "loop.*", "session.*"] };
  const socket = cleanup.use(socketSubscriber(origin, everything));
  const parameters = Object.entries({ developer: loops.developers ?? [], kind: loops.kinds ?? [] });
  const pairs = parameters.flatMap(([name, values]) => values.map((value) => [name, value] as const));
  const sse = cleanup.use(sseSubscriber(origin, pairs));
  const playing = loads.map(({ fake }) => fake.play());
  await getOn(cluster, loads);
  const probers = [
    cleanup.use(new Prober("state", `${origin}/api/v1/state?source=alice/shop`)),
    cleanup.use(new Prober("events", `${origin}/api/v1/events?last=1`)),
  ];

  const spans: Span[] = [];
  for (const fault of faults) {
    const span = await suffer(cluster, loads, fault, logs);
    console.log(`${fault.name}: ${((span.to - span.from) / 1_000).toFixed(1)} s`);
    spans.push(span);
  }
  for (const { fake } of loads) fake.pause();
  const recorded = (await Promise.all(loads.map((load) => load.isRecordedOnce(log.reader)))).flat();
  await sawTheLog(log.reader, socket, everything);
  await sawTheLog(log.reader, sse, loops);
  await hasTables(cluster);
  expect([...new Set(Object.values(await cluster.nats.replicas()))]).toEqual([3]);
  for (const { fake } of loads) await fake.end("kill");
  await Promise.all(playing);

  const observed = spans.map((span) => observedIn(span, recorded, socket, probers));
  console.log(tableOf(observed));
  const frames = loads.reduce((sum, { fake: { played } }) => sum + played.v1 + played.v2, 0);
  console.log(
    `cluster (${cpus().length} cores, ${new Date().toISOString().slice(0, 10)}): ${spans.length} faults, ${frames} frames said, ` +
      `${recorded.length} events in the log, ${socket.seen.length} seen over ${socket.connections()} sockets; ` +
      "nothing lost, nothing twice, in order, and the tables are those of the log",
  );
  const { missed, notJudged } = judged(observed, cpus().length);
  if (notJudged.length > 0) console.log(`times not judged, because the machine was busy: ${notJudged.join(", ")}`);
  expect(missed).toEqual([]);
  logs.passed();
}

/** A laptop's `tapedeck record`, which pushes through HAProxy. */
async function pushes(
  { balancer, origin, caFile }: Cluster,
  { developer, fake }: Load,
  logs: RunLogs,
): Promise<AsyncDisposable> {
  const cwd = await mkdtemp(join(inject("serversFolder"), "push-"));
  const source = ["--developer", developer, "--project", "shop", "--redact", "off"];
  const cli = startCli(["record", "--upstream", "skaffold", "--address", fake.address, ...source], {
    cwd,
    env: {
      TAPEDECK_URL: origin,
      TAPEDECK_CA: caFile,
      TAPEDECK_GRPC_PORT: balancer.grpc.split(":")[1],
      TAPEDECK_SPILL: join(cwd, "spill"),
    },
  });
  logs.keep("tap", cli.child);
  await until(() => fake.peers.size === 1, { message: "the laptop's tap to dial" });
  return cli;
}

async function suffer(
  cluster: Cluster,
  loads: readonly Load[],
  { name, steps, excused }: Fault,
  logs: RunLogs,
): Promise<Span> {
  const from = Date.now();
  for (const [index, step] of steps.entries()) {
    logs.note(`${name}: step ${index + 1} of ${steps.length}`);
    await step(cluster);
    logs.note("done, everybody must get on");
    await getOn(cluster, loads);
  }
  logs.note("everything must be ready");
  await cluster.ready();
  logs.note(`${name} is over`);
  return { name, from, to: Date.now(), load: loadavg()[0] ?? 0, excused };
}

/** Resolves when the frames of every upstream are recorded again. */
async function getOn({ log }: Cluster, loads: readonly Load[]): Promise<void> {
  await Promise.all(loads.map((load) => load.recorded(log.reader, framesAfterStep)));
}

/** Checks that the tables equal those that an undisturbed query of this version builds from the same log. */
async function hasTables({ postgres, log }: Cluster): Promise<void> {
  const { lastOffset } = await log.reader.bounds();
  await using fresh = await freshDatabase();
  await projectUntil(fresh.url, log.reader, sequenceOf(lastOffset), { textRows: true });
  const expected = withoutVersion(await contents(fresh.url));
  const isSame = async () => {
    expect(differencesOf(withoutVersion(await contents(postgres.url)), expected)).toEqual([]);
    return true;
  };
  await until(isSame, { message: "the tables to have everything", deadlineMs: 300_000 });
}

/** A later version makes the same rows under another name. */
function withoutVersion(tables: Awaited<ReturnType<typeof contents>>): typeof tables {
  const checkpoint = (tables.checkpoint ?? []).map((row) => ({ ...(row as object), projection: "" }));
  return { ...tables, checkpoint };
}

function observedIn(
  span: Span,
  recorded: readonly RecordedEvent[],
  { seen }: Subscriber<ReceivedEvent>,
  probers: readonly Prober[],
): Observed {
  return {
    ...span,
    recording: longestRecording(recorded, span),
    live: longestDelivery(recorded, seen, span),
    reads: Object.fromEntries(probers.map((prober) => [prober.name, prober.longestWait(span.from, span.to)])),
  };
}
