import { type Database, openDatabase } from "@tapedeck/query/for-cli/maintain";
import { type ReaderLimits, readerLimits } from "@tapedeck/query/for-cli/settings";
import { CommandError } from "../../command-error.ts";
import { findHere, type Here, noServerOn } from "../../maintain/here.ts";

export type DatabaseHere = AsyncDisposable &
  Pick<Here, "nats"> & {
    readonly database: Database;
    readonly limits: ReaderLimits;
    /** Where a login reaches the database. */
    readonly urlOf: (login: string, password: string) => string;
  };

/**
 * The database of the Tapedeck that `up` runs on a data folder, or the one that the settings name (`postgres.url`).
 * @throws CommandError when there is neither, or it can't be reached
 */
export async function openDatabaseHere(data: string, env: NodeJS.ProcessEnv): Promise<DatabaseHere> {
  const here = await findHere(data, env);
  const read = here.settings();
  const limits = readerLimits(read);
  const url = await here.databaseUrl();
  if (url === undefined) throw noServerOn(data, "its Postgres (TAPEDECK_POSTGRES_URL)");
  read.assertValid();
  await using stack = new AsyncDisposableStack();
  const database = stack.use(openDatabase({ url, connections: 2 }));
  await reach(database, hostsOf(url));
  const owned = stack.move();
  return {
    database,
    limits,
    nats: here.nats,
    urlOf: (login, password) =>
      url.replace(userPart, `$1${encodeURIComponent(login)}:${encodeURIComponent(password)}@`),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
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
