import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { openLog } from "@tapedeck/shared/log/jetstream";
import type { LogReader } from "@tapedeck/shared/log/log";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { inject } from "vitest";
import { type OwnPostgres, startOwnPostgres } from "./own-postgres.ts";
import { type ServiceName, type ServiceProcess, startServiceProcess } from "./service-process.ts";

export const parts = ["ingest", "query", "gateway", "nats", "postgres"] as const;
export type Part = (typeof parts)[number];

export type ProcessSource = {
  readonly developer: string;
  readonly project: string;
  readonly address: string;
  readonly standby?: boolean;
};

/** All of Tapedeck as it runs on one machine: five processes on fixed ports. */
export type Processes = AsyncDisposable & {
  /** Gateway, "host:port". */
  readonly grpc: string;
  readonly http: string;
  /** The address of NATS. */
  readonly nats: string;
  /** The database's connection string. */
  readonly database: string;
  readonly services: Readonly<Record<ServiceName, ServiceProcess>>;
  /** The test's own reader of the log. */
  readonly log: LogReader;
  /** Sends SIGKILL and restarts the part as a supervisor would; resolves when it is ready. */
  kill(part: Part): Promise<void>;
};

export async function startProcesses(
  sources: readonly ProcessSource[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Processes> {
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.use(await startTestNats({ syncAlways: true }));
  const postgres: OwnPostgres = cleanup.use(await startOwnPostgres());
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_POSTGRES_URL: postgres.url,
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_SOURCES: JSON.stringify(sources),
    TAPEDECK_QUERY_TEXT_ROWS: "true",
    TAPEDECK_INGEST_SPILL_DIR: await spillFolder(),
    ...settings,
  };
  const ingest = cleanup.use(await startServiceProcess("ingest", env));
  const query = cleanup.use(await startServiceProcess("query", env));
  const behind = {
    TAPEDECK_QUERY_ADDRESS: query.addresses.grpc ?? "",
    TAPEDECK_INGEST_ADDRESS: ingest.addresses.grpc ?? "",
  };
  const gateway = cleanup.use(await startServiceProcess("gateway", { ...env, ...behind }));
  const services = { ingest, query, gateway };
  const log = cleanup.use(await openTestLog(nats.url));
  const owned = cleanup.move();
  return {
    grpc: gateway.addresses.grpc ?? "",
    http: gateway.addresses.http ?? "",
    nats: nats.url,
    database: postgres.url,
    services,
    log: log.reader,
    async kill(part) {
      if (part === "postgres") {
        await postgres.kill();
        await postgres.start();
      } else if (part === "nats") {
        await nats.kill();
        await until(() => nats.restart().then(() => true), { message: "nats-server to start again" });
      } else {
        await services[part].kill();
        await services[part].start();
      }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Returns the spill folder of one ingest; it is removed with the run's servers. */
export function spillFolder(): Promise<string> {
  return mkdtemp(join(inject("serversFolder"), "spill-"));
}

/** Opens the log over a connection that survives kills of the server. */
export async function openTestLog(url: string | string[], workspace = "default") {
  const nats = await connectThroughRestarts(url);
  const log = await openLog(nats, { workspace, syncKnown: true, timeoutMs: 20_000 });
  return {
    reader: log.reader,
    writer: log.writer,
    [Symbol.asyncDispose]: async () => {
      await log[Symbol.asyncDispose]();
      await nats.close();
    },
  };
}
