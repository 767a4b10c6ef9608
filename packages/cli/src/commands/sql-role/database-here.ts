import { join, resolve } from "node:path";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { type Database, openDatabase } from "@tapedeck/query/for-cli/maintain";
import { type ReaderLimits, readerLimits } from "@tapedeck/query/for-cli/settings";
import { commandToStart } from "@tapedeck/shared/installation";
import type { NatsSettings } from "@tapedeck/shared/service/nats";
import type { SettingsReader } from "@tapedeck/shared/service/settings";
import { CommandError } from "../../command-error.ts";
import { natsHere } from "../../maintain/nats-here.ts";
import { settingsHere } from "../../maintain/settings-here.ts";
import { type RunningUp, runningUp } from "../../up/lock.ts";
import { ownerUrl } from "../../up/own-servers.ts";

export type DatabaseHere = AsyncDisposable & {
  readonly database: Database;
  readonly limits: ReaderLimits;
  /**
   * Where this Tapedeck's audit log is. Undefined where the settings name a Postgres and no NATS. Rejects when a setting
   * of NATS is wrong.
   */
  readonly nats: () => Promise<NatsSettings | undefined>;
  /** Where a login reaches the database. */
  readonly urlOf: (login: string, password: string) => string;
};

/**
 * The database of the Tapedeck that `up` runs on a data folder, or the one that the settings name (`postgres.url`).
 * @throws CommandError when there is neither, or it can't be reached
 */
export async function openDatabaseHere(data: string, env: NodeJS.ProcessEnv): Promise<DatabaseHere> {
  const running = await runningUp(resolve(data));
  const read = settingsHere(running, env);
  const limits = readerLimits(read);
  const url = await urlHere(running, read, data);
  read.assertValid();
  await using stack = new AsyncDisposableStack();
  const database = stack.use(openDatabase({ url, connections: 2 }));
  await reach(database, hostsOf(url));
  const owned = stack.move();
  return {
    database,
    limits,
    nats: async () => {
      const readNats = settingsHere(running, env);
      const nats = await natsHere(running, readNats, data);
      readNats.assertValid();
      return nats;
    },
    urlOf: (login, password) =>
      url.replace(userPart, `$1${encodeURIComponent(login)}:${encodeURIComponent(password)}@`),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function urlHere(running: RunningUp | undefined, read: SettingsReader, data: string): Promise<string> {
  const own = running?.addresses.postgres;
  if (own !== undefined) return ownerUrl(own, await loadSecrets(join(resolve(data), "secrets")));
  const theirs = read.string("postgres.url", undefined);
  if (theirs !== undefined) return theirs;
  throw new CommandError(
    `no Tapedeck server runs on ${data}: start it with \`${commandToStart()}\`, or give its data folder (--data) or its Postgres (TAPEDECK_POSTGRES_URL).`,
  );
}

/** Not `URL`: an address may name several hosts. */
const userPart = /^(\w+:\/\/)(?:[^@/]*@)?/;

function hostsOf(url: string): string {
  return url.replace(userPart, "").replace(/[/?].*$/, "");
}

/** The address without its password. */
async function reach({ connect }: Database, host: string): Promise<void> {
  try {
    await (await connect()).end();
  } catch (cause) {
    const why = cause instanceof Error && cause.message !== "" ? cause.message : "it does not answer";
    throw new CommandError(`Postgres at ${host} can't be reached (${why}).`, { cause });
  }
}
