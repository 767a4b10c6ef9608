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

/** A recorder holds a lease. On a NATS that is not ours, nothing else shows whether a Tapedeck runs on it. */
async function refuseWriters(nats: NatsConnection): Promise<void> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  for (let seq = 1; ; ) {
    const query = { seq, next_by_subj: "$KV.TAPEDECK_OWNERS.>" };
    const lease = await jsm.streams.getMessage("KV_TAPEDECK_OWNERS", query).catch(() => null);
    if (lease === null) return;
    seq = lease.seq + 1;
    if (lease.data.byteLength === 0) continue;
    const source = lease.subject.replace("$KV.TAPEDECK_OWNERS.", "");
    throw new CommandError(
      `a Tapedeck server uses this NATS (it records ${source}): stop its services first. A killed service counts as stopped after 6 s.`,
    );
  }
}
