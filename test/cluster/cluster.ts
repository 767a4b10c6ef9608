import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectLogs } from "@tapedeck/shared/log/connect-log";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import type { NatsSettings } from "@tapedeck/shared/service/nats";
import { until } from "@tapedeck/shared/testing/until";
import type { NatsConnection } from "nats";
import { type ServiceName, type ServiceProcess, startServiceProcess } from "../faults/service-process.ts";
import { type Frontends, frontends, startBalancer } from "./balancer.ts";
import { NatsCluster } from "./nats-cluster.ts";
import { PostgresPair } from "./postgres-pair.ts";
import type { RunLogs } from "./run-logs.ts";
import { type Secured, secured, securedEnv } from "./secured.ts";

/** An upstream, dialled by the ingest that holds its lease. */
export type ClusterSource = { readonly developer: string; readonly project: string; readonly address: string };

const root = fileURLToPath(new URL("../..", import.meta.url));

type Services = Readonly<Record<ServiceName, readonly ServiceProcess[]>>;

const counts: Readonly<Record<ServiceName, number>> = { ingest: 2, query: 2, gateway: 3 };

type Parts = {
  readonly nats: NatsCluster;
  readonly postgres: PostgresPair;
  readonly services: Services;
  readonly balancer: Frontends;
  readonly log: TestLog;
  readonly by: Secured;
  readonly after: string | undefined;
  readonly owned: AsyncDisposableStack;
};

/**
 * A Tapedeck of several machines, on one machine by ports: see docs/cluster.md. Its data is on disk, to which it is
 * synced.
 */
export class Cluster implements AsyncDisposable {
  readonly nats: NatsCluster;
  readonly postgres: PostgresPair;
  readonly services: Services;
  /** The addresses for clients and taps. */
  readonly balancer: Frontends;
  /** The test's own connection. */
  readonly log: TestLog;
  /** The balancer's address for clients, such as "https://127.0.0.1:7052". */
  readonly origin: string;
  /** PEM file of the authority to trust. */
  readonly caFile: string;
  readonly #after: string | undefined;
  readonly #owned: AsyncDisposableStack;

  private constructor({ nats, postgres, services, balancer, log, by, after, owned }: Parts) {
    this.nats = nats;
    this.postgres = postgres;
    this.services = services;
    this.balancer = balancer;
    this.log = log;
    this.origin = `https://${balancer.http}`;
    this.caFile = by.caFile;
    this.#after = after;
    this.#owned = owned;
  }

  /**
   * With users of NATS, and TLS on every connection. `after` is the folder of the version to which it can be upgraded.
   */
  static async start(sources: readonly ClusterSource[], logs: RunLogs, after?: string): Promise<Cluster> {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "tapedeck-cluster-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    await chmod(folder, 0o711); // started by root, Postgres runs as another user
    const by = await secured(folder);
    const nats = stack.use(await NatsCluster.start(folder, { secured: by, logs }));
    const postgres = stack.use(await PostgresPair.start(folder, { secured: by, logs }));
    const balancer = await frontends();
    const env = {
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_NATS_REPLICAS: "3",
      TAPEDECK_NATS_SYNC_ALWAYS: "true",
      TAPEDECK_POSTGRES_URL: postgres.url,
      TAPEDECK_SERVICES_KEY: "test-key",
      TAPEDECK_SOURCES: JSON.stringify(sources.map((source) => ({ ...source, standby: true, redact: "off" }))),
      TAPEDECK_QUERY_TEXT_ROWS: "true",
      // The name in the certificates.
      TAPEDECK_QUERY_ADDRESS: balancer.query.replace("127.0.0.1", "localhost"),
      TAPEDECK_INGEST_ADDRESS: balancer.ingest.replace("127.0.0.1", "localhost"),
    };
    const start = (name: ServiceName) =>
      Promise.all(
        Array.from({ length: counts[name] }, async (_, index) => {
          const spill = { TAPEDECK_INGEST_SPILL_DIR: join(folder, `spill-${index + 1}`) };
          const own = { ...env, ...spill, ...securedEnv(name, by) };
          const logFile = logs.fileOf(`${name}-${index + 1}`);
          return stack.use(await startServiceProcess(name, own, [], { logFile }));
        }),
      );
    const services = { ingest: await start("ingest"), query: await start("query"), gateway: await start("gateway") };
    stack.use(await startBalancer(logs.fileOf("haproxy"), { at: balancer, scheme: "https" }, services));
    const log = stack.use(await openLog({ url: nats.url, ...by.testLogin }));
    const cluster = new Cluster({ nats, postgres, services, balancer, log, by, after, owned: stack.move() });
    await cluster.ready();
    return cluster;
  }

  /** Resolves when every service reports ready and every node of NATS is up to date. */
  async ready(): Promise<void> {
    const scheme = new URL(this.origin).protocol;
    const health = [
      ...this.services.gateway.map(({ addresses }) => `${scheme}//${addresses.http}`),
      ...[...this.services.query, ...this.services.ingest].map(({ addresses }) => `http://${addresses.health}`),
    ];
    for (const address of health) {
      const isReady = async () => {
        // One that never answers would use up all of the time.
        const answer = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(30_000) });
        if (!answer.ok) throw new Error(await answer.text());
        return true;
      };
      await until(isReady, { message: `${address} to be ready`, deadlineMs: 300_000 });
    }
    await this.nats.whole();
  }

  /** Shuts down each process of a service cleanly and starts it again, one after the other. */
  async restart(name: ServiceName): Promise<void> {
    for (const service of this.services[name]) {
      await service.kill("SIGTERM");
      await service.start();
    }
  }

  /** Restarts with the later version. */
  async upgrade(name: ServiceName): Promise<void> {
    if (this.#after === undefined) throw new Error("there is no later version");
    for (const service of this.services[name]) {
      await service.kill("SIGTERM");
      await service.start({ folder: this.#after, env: {} });
    }
  }

  /** Restarts with this version. Its query needs a database of its own, because the cluster's has tables unknown to it. */
  async downgrade(name: ServiceName): Promise<void> {
    const database = await this.postgres.makeDatabase("before");
    for (const service of this.services[name]) {
      await service.kill("SIGTERM");
      await service.start({ folder: root, env: { TAPEDECK_POSTGRES_URL: database } });
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync();
  }
}

/** The log of the default workspace, with a connection of its own. */
type TestLog = Log & { readonly nats: NatsConnection };

async function openLog(settings: NatsSettings): Promise<TestLog> {
  const log = await connectLogs({
    service: "test",
    settings: { ...settings, syncAlways: true },
    logger: silentLogger,
    signal: new AbortController().signal,
    awayMessage: "the log is unavailable",
    create: true,
    prepare: async (connected) => {
      const log = await connected.logs.of("default");
      return { ...log, nats: connected.nats, [Symbol.asyncDispose]: () => connected[Symbol.asyncDispose]() };
    },
  });
  if (log === undefined) throw new Error("the log was not opened");
  return log;
}
