import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { forgetForeignTables } from "@tapedeck/query/forget-tables";
import { backUpLog, restoreLog } from "@tapedeck/shared/log/backup";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { formatPosition } from "@tapedeck/shared/log/position";
import { streamName } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";
import { CommandError } from "../command-error.ts";
import type { RestoreOptions } from "../commands/restore.ts";
import { checkDataFolder } from "../up/data-folder.ts";
import { lockUp, runningUp } from "../up/lock.ts";
import { natsUser, startServers } from "../up/servers.ts";
import { databaseName, ownerUrl } from "../up/settings.ts";
import { newBackup, readBackup } from "./backup-folder.ts";

/** Puts the log of a backup in place of the one that this machine has; what was there is kept as a backup, too. */
export async function restore(folder: string, { data, replace = false }: RestoreOptions): Promise<void> {
  const { snapshot, pieces } = await readBackup(folder);
  const dataDir = resolve(data);
  const running = await runningUp(dataDir);
  if (running !== undefined) {
    throw new CommandError(`Tapedeck runs on ${data} (process ${running.pid}): stop it, restore, and start it again.`);
  }
  await checkDataFolder(dataDir);
  await using _lock = await lockUp(dataDir, "record", dataDir);
  const secrets = await loadSecrets(join(dataDir, "secrets"));
  const hasTables = await stat(join(dataDir, "postgres")).then(Boolean, () => false);
  const servers = await startServers({
    storeDir: dataDir,
    secrets,
    nats: { port: 0 },
    postgres: hasTables ? { port: 0, database: databaseName } : undefined,
    say: (line) => process.stderr.write(`tapedeck: ${line}\n`),
  });
  await using stack = new AsyncDisposableStack();
  if (servers.nats) stack.use(servers.nats);
  if (servers.postgres) stack.use(servers.postgres);
  const settings = { url: servers.nats?.current().url ?? "", user: natsUser, password: secrets.natsPassword };
  const nats = stack.adopt(await connectNats("cli", settings, silentLogger), (connection) => connection.close());

  const kept = await makeRoom(nats, replace, join(dataDir, "replaced", new Date().toISOString().replace(/[:.]/g, "-")));
  const { epoch, lastSeq, former } = await restoreLog(nats, snapshot, pieces());
  await using log = await openLog(nats, { create: false, syncKnown: true });
  const postgres = servers.postgres?.current();
  const forgotten =
    postgres !== undefined && (await forgetForeignTables(ownerUrl(`127.0.0.1:${postgres.port}`, secrets), log.reader));

  const last = former.at(-1);
  console.log(`restored ${snapshot.state.messages} events; the log goes on as ${epoch}`);
  if (last !== undefined) {
    const end = formatPosition({ epoch: last.epoch, seq: lastSeq });
    console.log(`positions up to ${end} are valid as before; later ones of ${last.epoch} are from another log now`);
  }
  if (kept !== undefined) console.log(`what was there is kept in ${kept}`);
  if (forgotten) console.log("the tables told of more than the log has now: they are made anew at the next start");
}

/** Where the log that was there is kept; undefined where there was none, or nothing in it. */
async function makeRoom(nats: NatsConnection, replace: boolean, keepIn: string): Promise<string | undefined> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  const info = await jsm.streams.info(streamName).catch((error: Error) => {
    if (error.name === "StreamNotFoundError") return undefined;
    throw error;
  });
  if (info === undefined) return undefined;
  const { messages, last_seq } = info.state;
  if (last_seq > 0 && !replace) {
    throw new CommandError(
      `there is a log already (${messages} events): say --replace to put the backup in its place (it is kept as a backup of its own).`,
    );
  }
  if (last_seq > 0) {
    await using backup = await newBackup(keepIn);
    await backup.finish(await backUpLog(nats, backup.take));
  }
  await jsm.streams.delete(streamName);
  return last_seq > 0 ? keepIn : undefined;
}
