import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import type { NatsConnection } from "nats";
import { CommandError } from "../command-error.ts";
import { printError } from "../display/output.ts";
import { checkDataFolder } from "../local-server/data-folder.ts";
import { lockUp } from "../local-server/lock.ts";
import { databaseName, natsUser, ownerUrl } from "../local-server/own-servers.ts";
import { startServers } from "../local-server/servers.ts";
import { dialNats, findHere } from "./here.ts";

/** NATS and Postgres of a Tapedeck that does not run: those of a data folder, or those that the settings name. */
export type StoppedMachine = AsyncDisposable & {
  readonly nats: NatsConnection;
  /** Undefined where there is none yet. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
};

/**
 * Starts what `up` would start, and keeps `up` away until it is disposed of.
 * @throws CommandError when a Tapedeck runs there, or something writes the log
 */
export async function openStoppedMachine(data: string, env: NodeJS.ProcessEnv = process.env): Promise<StoppedMachine> {
  const dataDir = resolve(data);
  const { running, ...named } = await findHere(data, env);
  if (running !== undefined) {
    throw new CommandError(
      `Tapedeck runs on ${data} (process ${running.pid}): stop it first, and start it again afterwards.`,
    );
  }
  await checkDataFolder(dataDir);
  await using stack = new AsyncDisposableStack();
  stack.use(await lockUp(dataDir, "record", dataDir));
  const namedNats = await named.nats();
  const namedDatabase = await named.databaseUrl();
  const secrets = await loadSecrets(join(dataDir, "secrets"));
  const hasTables = await stat(join(dataDir, "postgres")).then(Boolean, () => false);
  const servers = await startServers({
    storeDir: dataDir,
    secrets,
    nats: namedNats === undefined ? { port: 0 } : undefined,
    postgres: hasTables && namedDatabase === undefined ? { port: 0, database: databaseName } : undefined,
    printLine: (line) => printError(`tapedeck: ${line}`),
  });
  if (servers.nats) stack.use(servers.nats);
  if (servers.postgres) stack.use(servers.postgres);
  const url = `nats://127.0.0.1:${servers.nats?.current().port}`;
  const own = { url, user: natsUser, password: secrets.natsPassword };
  const nats = stack.adopt(await dialNats(namedNats ?? own), (connection) => connection.close());
  if (namedNats !== undefined) await refuseWriters(nats);
  const postgres = servers.postgres?.current();
  const databaseUrl =
    namedDatabase ?? (postgres === undefined ? undefined : ownerUrl(`127.0.0.1:${postgres.port}`, secrets));
  const owned = stack.move();
  return { nats, databaseUrl, dataDir, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** An ingest that holds a lease has a key. On a NATS that is not ours, nothing else shows whether a Tapedeck runs on it. */
async function refuseWriters(nats: NatsConnection): Promise<void> {
  const { streams } = await jetstreamManager(nats, { checkAPI: false });
  const owners = "KV_TAPEDECK_OWNERS";
  const info = await streams.info(owners, { subjects_filter: "$KV.TAPEDECK_OWNERS.*" }).catch((cause: Error) => {
    if (cause.name !== "StreamNotFoundError") throw cause;
  });
  for (const subject of Object.keys(info?.state.subjects ?? {})) {
    if (!subject.startsWith("$KV.TAPEDECK_OWNERS.process/")) continue;
    const last = await streams.getMessage(owners, { last_by_subj: subject });
    if (last === null || last.data.byteLength === 0) continue;
    throw new CommandError(
      "a Tapedeck server uses this NATS (an ingest of it is running): stop its services first. A killed service counts as stopped after 6 s.",
    );
  }
}
