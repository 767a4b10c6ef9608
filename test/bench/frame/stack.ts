import { randomBytes } from "node:crypto";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findNatsServer, type NatsServer, startNatsServer } from "@tapedeck/infra/local/nats-server";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { connect } from "nats";
import { smallMemory } from "tapedeck/commands/up/child-service";
import type { ServiceName, ServiceProcess } from "../../faults/service-process.ts";
import type * as idleProcess from "../workers/idle.ts";
import type { Bench } from "./bench.ts";
import type { Stack } from "./stack-type.ts";
import { startWorker } from "./worker.ts";

export type StackOptions = {
  readonly services: readonly ServiceName[];
  readonly sources?: readonly StackSource[];
  readonly env?: Readonly<Record<string, string>>;
  /** Loads nothing into the services, so that their idle time is their own; `loopHolds` is then unavailable. */
  readonly bare?: boolean;
  /** Starts the services as `tapedeck up` does, with less memory. */
  readonly asUp?: boolean;
};

export type StackSource = { readonly developer: string; readonly address: string };

export type { Stack };

const root = fileURLToPath(new URL("../../../", import.meta.url));
const loopReport = new URL("loop-report.mjs", import.meta.url).href;

/** How durable the stack's servers are, for the table. */
export const durability = "NATS sync_interval: always; Postgres fsync: on, synchronous_commit: on";

/** Uses free ports and a fresh data folder. Services start in the order of their dependencies. */
export async function startStack(bench: Bench, options: StackOptions): Promise<Stack> {
  const { readers } = bench.options;
  if (readers !== undefined && options.services.join() === "query,gateway") {
    return { ...readers, [Symbol.asyncDispose]: async () => {} };
  }
  await using cleanup = new AsyncDisposableStack();
  const folder = await bench.newFolder("data");
  await chmod(folder, 0o711); // started by root, Postgres runs as another user
  const nats = cleanup.use(await startNats(folder));
  const postgres =
    bench.options.postgres ??
    cleanup.use(await startPostgres({ dataDir: join(folder, "postgres"), port: 0, persistent: false, fsync: true }));
  const name = `tapedeck_${randomBytes(6).toString("hex")}`;
  await postgres.ensureDatabase(name);
  const connection = cleanup.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const log = cleanup.use(await openLog(connection, { workspace: "default", syncKnown: true }));
  await mkdir(join(folder, "spill"));
  const database = postgres.url(name);
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_POSTGRES_URL: database,
    TAPEDECK_SERVICES_KEY: "bench",
    TAPEDECK_SOURCES: JSON.stringify((options.sources ?? []).map((source) => ({ project: "shop", ...source }))),
    TAPEDECK_INGEST_SPILL_DIR: join(folder, "spill"),
    // Statistics of all developers are measured, too.
    TAPEDECK_PRIVACY_COMPARE_DEVELOPERS: "true",
    ...options.env,
  };
  const services = await startServices(cleanup, bench, options, env);
  const idle = cleanup.use(await startWorker<typeof idleProcess>(new URL("../workers/idle.ts", import.meta.url)));
  const owned = cleanup.move();
  return {
    nats: { url: nats.url, connection },
    log,
    database,
    services,
    idlePid: idle.pid,
    grpc: services.gateway?.addresses.grpc ?? "",
    http: services.gateway?.addresses.http ?? "",
    processes: {
      ...Object.fromEntries(Object.entries(services).map(([name, { pid }]) => [name, pid])),
      nats: nats.pid,
      postgres: postgres.pid,
    },
    async loopHolds() {
      const held = Object.entries(services).map(async ([name, service]) => [name, await service.ask("loop")] as const);
      const holds = Object.fromEntries(await Promise.all(held)) as Record<string, number>;
      return { ...holds, idle: await idle.call("loopHold") };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The same as in production: every message is on disk before it is acknowledged. */
export async function startNats(folder: string): Promise<NatsServer> {
  const binary = await findNatsServer({ bin: join(root, ".tapedeck", "bin"), log: () => {} });
  return startNatsServer({ binary, dataDir: join(folder, "nats"), port: 0, syncAlways: true });
}

type Services = Partial<Record<ServiceName, ServiceProcess>>;

async function startServices(
  cleanup: AsyncDisposableStack,
  bench: Bench,
  { services: names, bare = false, asUp = false }: StackOptions,
  env: Readonly<Record<string, string>>,
): Promise<Services> {
  const { part, startService } = bench;
  const { profileFolder } = bench.options;
  const services: Services = {};
  const start = async (name: ServiceName, more: Readonly<Record<string, string>> = {}) => {
    if (!names.includes(name)) return;
    const profile = profileFolder === undefined ? [] : profiling(profileFolder, `${part}-${name}`);
    const service = await startService(name, { ...(asUp && smallMemory.env), ...env, ...more }, [
      ...(asUp ? smallMemory.flags : []),
      ...(bare ? [] : ["--import", loopReport]),
      ...profile,
    ]);
    // Node writes a profile only on an orderly exit.
    cleanup.adopt(service, (each) => each.kill(profileFolder === undefined ? "SIGKILL" : "SIGTERM"));
    services[name] = service;
  };
  await Promise.all([start("ingest"), start("query")]);
  await start("gateway", {
    TAPEDECK_QUERY_ADDRESS: services.query?.addresses.grpc ?? "127.0.0.1:1",
    TAPEDECK_INGEST_ADDRESS: services.ingest?.addresses.grpc ?? "127.0.0.1:1",
  });
  return services;
}

function profiling(folder: string, name: string): string[] {
  return ["--cpu-prof", `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name}-${Date.now()}.cpuprofile`];
}
