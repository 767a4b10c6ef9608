import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isForeignFile } from "./foreign-files.ts";
import { LocalServerError, PortTakenError } from "./local-server-error.ts";
import { isNewEnough, natsVersion } from "./nats-binary.ts";
import { commandLineOf, type Exit, logSince, logSize, spawnServer, stopForeign, untilReady } from "./server-process.ts";

export { type FindNatsServer, findNatsServer } from "./nats-binary.ts";

/** How a nats-server is started. */
export type StartNatsServer = {
  /** A path, or a name on PATH; see findNatsServer. */
  readonly binary: string;
  readonly dataDir: string;
  readonly host?: string;
  /** 0 lets the server take a free one. */
  readonly port: number;
  readonly user?: string;
  readonly password?: string;
  /** Default: nats-server.log in the data directory. */
  readonly logFile?: string;
  /** Every acknowledged message is on disk. Default true; tests that lose no power may turn it off. */
  readonly syncAlways?: boolean;
  /** In the syntax of nats-server's configuration; for tests. Default: the size of the disk. */
  readonly maxFileStore?: string;
  /** Stop a server that an earlier, killed process left running on this data directory. The caller knows that it is alone. */
  readonly takeOver?: boolean;
};

/** A running nats-server. Disposing it stops the process. */
export type NatsServer = AsyncDisposable & {
  /** Includes user and password if there are any. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  stop(): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<Exit>;
};

/**
 * Starts a nats-server with JetStream on a data directory and resolves when it accepts connections.
 * @throws LocalServerError for an old server, a taken port, a data directory of something else or in use
 */
export async function startNatsServer(options: StartNatsServer): Promise<NatsServer> {
  const { binary, dataDir, host = "127.0.0.1", user, password } = options;
  const version = await natsVersion(binary);
  if (version === undefined) throw new LocalServerError(`${binary} is not a nats-server that runs on this machine.`);
  if (!isNewEnough(version)) {
    throw new LocalServerError(`nats-server ${version} (${binary}) is too old: install 2.12 or newer.`);
  }
  const configFile = configFileOf(dataDir);
  await prepare(dataDir);
  if (options.takeOver) await stopLeftNatsServer(dataDir);
  const pid = await runningOn(dataDir);
  if (pid !== undefined) {
    throw new LocalServerError(`a nats-server (process ${pid}) already runs on ${dataDir}: stop it first.`);
  }
  await writeFile(configFile, config(options), { mode: 0o600 });

  const logFile = options.logFile ?? join(dataDir, "nats-server.log");
  const logStart = await logSize(logFile);
  const server = await spawnServer({
    command: binary,
    args: ["-c", configFile],
    mark: configFile,
    logFile,
    stopSignal: "SIGTERM",
  });
  await writeFile(join(dataDir, "pid"), String(server.pid));

  const portsFile = join(dataDir, "ports", `nats-server_${server.pid}.ports`);
  const listening = await untilReady(server, () => readPort(portsFile));
  if (listening === undefined) throw whyNot(await logSince(logFile, logStart), options);

  const credentials = user === undefined ? "" : `${encodeURIComponent(user)}:${encodeURIComponent(password ?? "")}@`;
  return {
    ...server,
    url: `nats://${credentials}${host.includes(":") ? `[${host}]` : host}:${listening}`,
    port: listening,
    [Symbol.asyncDispose]: server.stop,
  };
}

function config({
  dataDir,
  host = "127.0.0.1",
  port,
  user,
  password,
  syncAlways = true,
  maxFileStore = "1PB",
}: StartNatsServer): string {
  const quoted = JSON.stringify;
  return `# Written at every start.
server_name: tapedeck
listen: ${quoted(`${host.includes(":") ? `[${host}]` : host}:${port === 0 ? -1 : port}`)}
ports_file_dir: ${quoted(join(dataDir, "ports"))}
# An event with its original bytes, or a batch of events, and headers.
max_payload: 8MB
jetstream {
  store_dir: ${quoted(join(dataDir, "store"))}
  # The disk is the limit; else it would be three quarters of what is free at the start.
  max_file_store: ${maxFileStore}
  ${syncAlways ? "sync_interval: always" : ""}
}
${user === undefined ? "" : `authorization { ${login({ user, password })} }`}
`;
}

function login({ user, password = "" }: { user: string; password?: string | undefined }): string {
  return `user: ${JSON.stringify(user)}, password: ${JSON.stringify(password)}`;
}

const ownFiles = new Set(["nats-server.conf", "nats-server.log", "store", "ports", "pid"]);

async function prepare(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const found = await readdir(dataDir);
    const isOurs = (name: string) => ownFiles.has(name) || name.endsWith(".old") || isForeignFile(name);
    const strange = found.find((name) => !isOurs(name));
    // Once it has a store it is NATS' folder, whatever else somebody puts there.
    if (strange !== undefined && !found.includes("store")) {
      throw new LocalServerError(
        `${dataDir} holds something else (${strange}) and can't be the data directory of NATS: choose an empty one.`,
      );
    }
    // The port files of a killed server could be mistaken for the new one's.
    await rm(join(dataDir, "ports"), { recursive: true, force: true });
    await mkdir(join(dataDir, "ports"));
  } catch (error) {
    if (error instanceof LocalServerError) throw error;
    throw new LocalServerError(`${dataDir} can't be the data directory of NATS: ${(error as Error).message}.`);
  }
}

/** Stops a server that a process which is gone left running on this data directory, if there is one. */
export async function stopLeftNatsServer(dataDir: string): Promise<void> {
  const pid = await runningOn(dataDir);
  if (pid !== undefined) await stopForeign(pid, "SIGTERM");
}

function configFileOf(dataDir: string): string {
  return join(dataDir, "nats-server.conf");
}

/** The process that serves this data directory; the number alone may belong to another program by now. */
async function runningOn(dataDir: string): Promise<number | undefined> {
  const pid = Number(await readFile(join(dataDir, "pid"), "utf8").catch(() => ""));
  return pid && (await commandLineOf(pid))?.endsWith(`-c ${configFileOf(dataDir)}`) ? pid : undefined;
}

async function readPort(portsFile: string): Promise<number | undefined> {
  try {
    const { nats }: { nats?: readonly string[] } = JSON.parse(await readFile(portsFile, "utf8"));
    return nats?.[0] === undefined ? undefined : Number(new URL(nats[0]).port);
  } catch {
    return undefined; // not there yet, or half written
  }
}

function whyNot(log: string, { host = "127.0.0.1", port, dataDir }: StartNatsServer): LocalServerError {
  if (log.includes("address already in use")) return new PortTakenError("NATS", host, port);
  const last = log.split("\n").findLast((line) => line.includes("[FTL]") || line.startsWith("nats-server:"));
  const reason = last?.replace(/^.*\[FTL\] */, "").replace(/^nats-server: */, "") ?? "it exited without a message";
  return new LocalServerError(`nats-server did not start on ${dataDir}: ${reason}.`);
}
