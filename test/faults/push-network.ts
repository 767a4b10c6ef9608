import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, type FakeSkaffoldOptions, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { type Seeded, seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { type RunningCli, startCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { expect, inject } from "vitest";
import { sentFrames } from "../harness/ingest-harness.ts";
import { type FaultyNetwork, faultyNetwork, type Weather } from "./faulty-network.ts";
import { openTestLog } from "./processes.ts";
import { framesOf, gapsOf, holes, kindsOf, lasting, sourceEvents } from "./recorded-events.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";

const fixtures = recordings.skaffold;
const channels = ["v1", "v2", "logs"] as const;

/**
 * A team's Tapedeck, as far as recording needs it, with TLS and tokens; the test controls the network in front of it.
 */
export type PushHarness = AsyncDisposable & {
  readonly network: FaultyNetwork;
  readonly services: Readonly<Record<"ingest" | "gateway", ServiceProcess>>;
  /** Starts a Skaffold, and a laptop's `tapedeck record` beside it, connected directly or over the network. */
  record(developer: string, options: RecordOver): Promise<RecordedOver>;
};

type RecordOver = Partial<FakeSkaffoldOptions> & {
  readonly recording: RecordedUpstream;
  readonly over: "network" | "wire";
  /** Default: acme. */
  readonly workspace?: string;
};

export type RecordedOver = {
  readonly fake: FakeSkaffold;
  readonly cli: RunningCli;
  /** The folder of its spill. */
  readonly spill: string;
  events(): Promise<readonly RecordedEvent[]>;
  /** Waits until everything that the fake has sent is in the log. */
  recorded(): Promise<void>;
};

export async function pushHarness(): Promise<PushHarness> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(inject("serversFolder"), "push-"));
  const nats = cleanup.use(await startTestNats());
  const { certFile, keyFile } = await testCertificate(folder);
  const env = { TAPEDECK_NATS_URL: nats.url, TAPEDECK_SERVICES_KEY: "test-key" };
  const ingest = cleanup.use(await startServiceProcess("ingest", env));
  const gateway = cleanup.use(
    await startServiceProcess("gateway", {
      ...env,
      TAPEDECK_INGEST_ADDRESS: ingest.addresses.grpc ?? "",
      TAPEDECK_QUERY_ADDRESS: "127.0.0.1:9",
      TAPEDECK_AUTH: "tokens",
      TAPEDECK_TLS_CERT: certFile,
      TAPEDECK_TLS_KEY: keyFile,
    }),
  );
  const port = Number(gateway.addresses.grpc?.split(":").at(-1));
  const network = cleanup.use(await faultyNetwork(port));
  const connection = cleanup.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const tokens = await openTokenStore(connection);
  const owned = cleanup.move();
  return {
    network,
    services: { ingest, gateway },
    async record(developer, { recording, over, workspace = "acme", ...options }) {
      const log = owned.use(await openTestLog(nats.url, workspace));
      const fake = owned.use(await startFakeSkaffold({ recording, ...options }));
      const lifetimeMs = 3_600_000;
      const made = makeToken({ name: developer, workspace, roles: ["recorder"], developer, lifetimeMs });
      await tokens.create(made);
      const args = [
        "record",
        "--upstream",
        "skaffold",
        "--address",
        fake.address,
        "--project",
        "shop",
        "--redact",
        "off",
      ];
      const to = `https://localhost:${over === "wire" ? port : network.port}`;
      const spill = join(folder, workspace, developer);
      const cli = startCli(args, {
        cwd: folder,
        env: {
          TAPEDECK_URL: urlOf(to),
          TAPEDECK_CA: certFile,
          TAPEDECK_TOKEN: made.text,
          TAPEDECK_SPILL: spill,
        },
      });
      owned.use(cli);
      await until(() => fake.peers.size === 1, { message: `${developer}'s tap to dial` });
      const source = sourceName({ workspace, developer, project: "shop", upstream: "skaffold" });
      const events = sourceEvents(log.reader, source);
      const isThere = async () => {
        const there = await events();
        for (const channel of channels) {
          const count = framesOf(there, channel).length;
          expect({ channel, count }).toEqual({ channel, count: fake.played[channel] });
        }
        return true;
      };
      const recorded = async () => void (await until(isThere, { message: `${developer}'s frames` }));
      return { fake, cli, spill, events, recorded };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export type BadNetwork = {
  readonly recording: string;
  /** The number of network faults. */
  readonly faults: number;
  /** The number of kills of ingest or the gateway in between. */
  readonly kills: number;
  /** Whether an identical Skaffold is recorded over a good network, to compare all fields of each event. */
  readonly isCompared: boolean;
};

const weathers: readonly Weather[] = ["hole", "hole", "deaf", "mute", "slow", "refusing"];

/**
 * Records a Skaffold in each of two workspaces, over a network that comes and goes. All its frames must be in the log of its
 * workspace, once, and it must never have had to wait.
 */
export async function comesAndGoes({ recording: folder, faults, kills, isCompared }: BadNetwork): Promise<void> {
  const random = seeded("push-network");
  await using harness = await pushHarness();
  const { network, services } = harness;
  const recording = loadRecording(join(fixtures, folder));
  const both = await Promise.all(
    ["acme", "globex"].map((workspace) => harness.record("wild", { recording, over: "network", workspace })),
  );
  const first = random.below(2);
  const victims = Array.from(
    { length: kills },
    (_, at) => (["ingest", "gateway"] as const)[(first + at) % 2] ?? "ingest",
  );
  const deaths = new Map(victims.map((victim, at) => [Math.floor(((at + 1) * faults) / (kills + 1)), victim]));
  for (let fault = 0; fault < faults; fault++) {
    const victim = deaths.get(fault);
    await strike(network, random);
    const v1 = Math.floor((recording.messages.v1.length * (fault + 1)) / (faults + 1));
    // Resolves only when the taps have read everything.
    await Promise.all(both.map(({ fake }) => fake.playUntil({ v1 })));
    for (const { fake } of both) expect([fake.health.v1.stalled, fake.health.v2.stalled]).toEqual([false, false]);
    if (victim !== undefined) {
      await services[victim].kill();
      await services[victim].start();
    }
    network.weather = "fine";
    if (random.below(4) === 0) await Promise.all(both.map((wild) => wild.recorded()));
  }
  for (const wild of both) {
    await wild.fake.play();
    await wild.recorded();
    await ended(wild);
  }
  const before = isCompared ? await recordedCalmly(harness, recording) : undefined;
  for (const wild of both) {
    const after = await wild.events();
    for (const channel of channels) expect(framesOf(after, channel)).toEqual(sentFrames(recording, channel));
    if (before !== undefined)
      for (const channel of channels) expect(lasting(after, channel)).toEqual(lasting(before, channel));
    expect(holes(after)).toEqual([]);
    expect(channels.flatMap((channel) => gapsOf(after, channel))).toEqual([]);
    expect(kindsOf(after).filter((kind) => /^session\.(started|ended|gap)$/.test(kind))).toEqual(["session.started"]);
    expect([wild.fake.peers.size, wild.fake.hung]).toEqual([1, []]);
    console.log(
      `push-network: ${faults} faults, ${victims.length} kills, ${network.connections} connections, ${after.length} events`,
    );
  }
}

/** Records the same over a good network; resolves with its events. */
async function recordedCalmly(harness: PushHarness, recording: RecordedUpstream): Promise<readonly RecordedEvent[]> {
  const calm = await harness.record("calm", { recording, over: "wire" });
  await calm.fake.play();
  await calm.recorded();
  await ended(calm);
  return await calm.events();
}

/** Sends Ctrl-C when all is recorded. */
export async function ended({ cli }: RecordedOver): Promise<void> {
  cli.child.kill("SIGINT");
  expect([await cli.ended, cli.stdout().split("\n").at(-2)]).toEqual([
    0,
    expect.stringContaining("everything is recorded as"),
  ]);
}

/** Injects a fault into the traffic, which may last for a while. */
async function strike(network: FaultyNetwork, random: Seeded): Promise<void> {
  const how = random.below(4);
  if (how === 0) network.cut();
  else if (how === 1) network.reset();
  else {
    network.weather = weathers[random.below(weathers.length)] ?? "hole";
    // Some connections are cut during such a fault, too.
    if (how === 2) network.cut();
    await delay(random.below(150));
  }
}
