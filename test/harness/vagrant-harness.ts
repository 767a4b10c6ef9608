import { credentials } from "@grpc/grpc-js";
import { type FakeVagrant, startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { migrated } from "@tapedeck/query/testing/migrated";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { grpcLink, linkOptions } from "@tapedeck/tap/push/link";
import { pushItems } from "@tapedeck/tap/push/push";
import { openSpill, type Spill } from "@tapedeck/tap/spill/spill";
import { taps } from "@tapedeck/tap/taps";
import { openTestLog, spillFolder } from "../faults/processes.ts";
import { sourceEvents } from "../faults/recorded-events.ts";
import { type ServiceProcess, startServiceProcess } from "../faults/service-process.ts";
import { type VagrantClient, vagrantClient } from "../vagrant/client.ts";
import { metric } from "./ingest-harness.ts";

/** A fake Vagrant server that is recorded as this developer's. */
export type VagrantHost = {
  readonly name: string;
  readonly source: SourceName;
  readonly fake: FakeVagrant;
  readonly events: () => Promise<readonly RecordedEvent[]>;
};

/** Fake servers, recorded by all of Tapedeck as it runs on one machine: three processes that may be killed. */
export type VagrantHarness = AsyncDisposable & {
  readonly nats: TestNats;
  readonly log: LogReader;
  readonly ingest: ServiceProcess;
  readonly query: ServiceProcess;
  readonly gateway: ServiceProcess;
  readonly hosts: readonly VagrantHost[];
  /** A client of the gateway, whose address stays. With several hosts a call must name its source. */
  readonly client: VagrantClient;
  /** Resolves when everything that the tap has observed is in the log. */
  readonly recorded: () => Promise<void>;
};

export type VagrantHarnessOptions = {
  /** The taps run beside ingest and push to it, as with `tapedeck run`: they outlive it. */
  readonly tapsBeside?: boolean;
};

export async function vagrantHarness(
  names: readonly string[],
  { tapsBeside = false }: VagrantHarnessOptions = {},
): Promise<VagrantHarness> {
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.use(await startTestNats({ syncAlways: true }));
  const database = cleanup.use(await freshDatabase(migrated));
  const log = cleanup.use(await openTestLog(nats.url));
  const hosts = await Promise.all(
    names.map(async (name) => {
      const fake = cleanup.use(await startFakeVagrant());
      const source = sourceName({ workspace: "default", developer: name, project: "shop", upstream: "vagrant" });
      return { name, source, fake, events: sourceEvents(log.reader, source) };
    }),
  );
  const sources = hosts.map(({ name, fake }) => ({
    upstream: "vagrant",
    developer: name,
    project: "shop",
    address: fake.address,
    redact: "off",
  }));
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_POSTGRES_URL: database.url,
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_SOURCES: JSON.stringify(tapsBeside ? [] : sources),
    TAPEDECK_INGEST_SPILL_DIR: await spillFolder(),
  };
  const [ingest, query] = await Promise.all([startServiceProcess("ingest", env), startServiceProcess("query", env)]);
  cleanup.use(ingest);
  cleanup.use(query);
  const behind = {
    TAPEDECK_QUERY_ADDRESS: query.addresses.grpc ?? "",
    TAPEDECK_INGEST_ADDRESS: ingest.addresses.grpc ?? "",
  };
  const gateway = cleanup.use(await startServiceProcess("gateway", { ...env, ...behind }));
  const client = cleanup.use(vagrantClient(gateway.addresses.grpc ?? ""));
  const taps = tapsBeside ? await Promise.all(hosts.map((host) => tapBeside(host, gateway.addresses.grpc ?? ""))) : [];
  for (const tap of taps) cleanup.use(tap);
  await Promise.all(hosts.map(described));
  const owned = cleanup.move();
  return {
    nats,
    log: log.reader,
    ingest,
    query,
    gateway,
    hosts,
    client,
    async recorded() {
      const isEmpty = async () =>
        tapsBeside ? taps.every(isPushed) : (await metric(ingest, "tapedeck_ingest_spill_items")) === 0;
      await until(isEmpty, { message: "all that was seen to be in the log" });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Polls the host from this process, and pushes its observations to the gateway or to ingest, also during outages. */
export async function tapBeside({ name, fake }: Pick<VagrantHost, "name" | "fake">, to: string) {
  await using cleanup = new AsyncDisposableStack();
  const over = new AbortController();
  const hello = { developer: name, project: "shop", upstream: "vagrant", tap: fake.newId(), labels: {}, redact: "off" };
  const spill = cleanup.use(await openSpill({ dir: await spillFolder(), hello }));
  const link = cleanup.adopt(new RecorderClient(to, credentials.createInsecure(), linkOptions), (each) => each.close());
  const { address } = fake;
  const tap = (await taps.vagrant()).run({
    address,
    settings: {},
    emit: (item) => spill.append(item),
    signal: over.signal,
  });
  const log = { info: () => {}, warn: () => {} };
  const push = pushItems({
    link: grpcLink(link),
    spill,
    control: tap.control,
    stream: tap.stream,
    signal: over.signal,
    log,
  });
  cleanup.defer(async () => {
    over.abort();
    await Promise.all([tap.done, push.done]);
  });
  const owned = cleanup.move();
  return { spill, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

export function isPushed({ spill }: { readonly spill: Spill }): boolean {
  const { committed, nextIndex } = spill.state();
  return committed === nextIndex - 1n;
}

/** The metadata of a call to this host. */
export function at({ source }: VagrantHost): Readonly<Record<string, string>> {
  return { "tapedeck-source": source };
}

/** Resolves when everything that existed at the session's start has been reported: what comes from now on is news. */
async function described({ name, fake, events }: VagrantHost): Promise<void> {
  const isDescribed = async () =>
    (await events()).some(({ event }) => event.kind === "inventory.described" && event.channel === "resources");
  await until(isDescribed, { message: `${name} to be described` });
  await until(() => fake.calls("_ListJobs").made > 0, { message: `a first look at the jobs of ${name}` });
}
