import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { connectLogs } from "@tapedeck/shared/log/connect-log";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { until } from "@tapedeck/shared/testing/until";
import { inject } from "vitest";
import { Load } from "../cluster/load.ts";
import { type ServiceName, type ServiceProcess, startServiceProcess } from "../faults/service-process.ts";
import { type ReceivedEvent, type Subscriber, sawTheLog, socketSubscriber } from "../faults/subscribers.ts";

type Env = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, "../..");

/** After a step of a procedure Skaffold has to go on by so many frames, and they have to be recorded. */
const framesAfterStep = 20;

export type RunningServices = AsyncDisposable & {
  readonly services: Readonly<Record<ServiceName, ServiceProcess>>;
  /** The settings that a further gateway needs. */
  readonly gatewayEnv: Env;
  /** Shuts a service down and starts it again, with further settings if given. */
  restart(name: ServiceName, env?: Env): Promise<void>;
  /** Resolves when the Skaffold has gone on and everything of it is recorded. */
  goesOn(): Promise<void>;
  /** Checks that each frame of the Skaffold is recorded once and in order, and that subscribers saw it so. */
  nothingIsLost(...others: readonly Subscriber<ReceivedEvent>[]): Promise<void>;
};

/** The services, each in a process, which record a Skaffold that says some frames a second without an end. */
export async function startRunningServices(nats: string, database: string): Promise<RunningServices> {
  await using cleanup = new AsyncDisposableStack();
  const load = cleanup.use(await Load.start("alice"));
  const source = { developer: "alice", project: "shop", address: load.fake.address, redact: "off" };
  const env = {
    TAPEDECK_NATS_URL: nats,
    TAPEDECK_NATS_SYNC_ALWAYS: "true",
    TAPEDECK_POSTGRES_URL: database,
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_SOURCES: JSON.stringify([source]),
    TAPEDECK_INGEST_SPILL_DIR: await mkdtemp(join(inject("serversFolder"), "spill-")),
  };
  const ingest = cleanup.use(await startServiceProcess("ingest", env));
  const query = cleanup.use(await startServiceProcess("query", env));
  const addresses = {
    TAPEDECK_QUERY_ADDRESS: query.addresses.grpc ?? "",
    TAPEDECK_INGEST_ADDRESS: ingest.addresses.grpc ?? "",
  };
  const gatewayEnv = { ...env, ...addresses };
  const services = { ingest, query, gateway: cleanup.use(await startServiceProcess("gateway", gatewayEnv)) };
  const log = cleanup.use(await openLog(nats));
  const subscriber = cleanup.use(socketSubscriber(services.gateway.addresses.http ?? "", {}));
  const playing = load.fake.play();
  const goesOn = () => load.recorded(log.reader, framesAfterStep);
  await goesOn();
  const owned = cleanup.move();
  return {
    services,
    gatewayEnv,
    goesOn,
    async restart(name, more) {
      await services[name].kill("SIGTERM");
      await services[name].start(more && { folder: root, env: more });
    },
    async nothingIsLost(...others) {
      load.fake.pause();
      await load.isRecordedOnce(log.reader);
      await until(async () => (await fetch(`http://${services.gateway.addresses.http}/readyz`)).ok, {
        message: "everything to be ready",
      });
      for (const each of [subscriber, ...others]) await sawTheLog(log.reader, each, {});
      await load.fake.end("kill");
      await playing;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function openLog(url: string): Promise<Log> {
  const log = await connectLogs({
    service: "test",
    settings: { url, syncAlways: true },
    logger: silentLogger,
    signal: new AbortController().signal,
    awayMessage: "the log is unavailable",
    create: true,
    prepare: async (connected) => {
      const log = await connected.logs.of("default");
      return { ...log, [Symbol.asyncDispose]: () => connected[Symbol.asyncDispose]() };
    },
  });
  if (log === undefined) throw new Error("the log was not opened");
  return log;
}
