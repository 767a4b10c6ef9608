import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findNatsServer, type NatsServer, startNatsServer } from "@tapedeck/infra/local/nats-server";
import { type Postgres, startPostgres } from "@tapedeck/infra/local/postgres";
import type { Secrets } from "@tapedeck/infra/local/secrets";
import { cacheFolder, installation } from "@tapedeck/shared/installation";
import { type Kept, keep } from "./keep.ts";
import { natsUser } from "./own-servers.ts";

export type StartServers = {
  readonly storeDir: string;
  readonly secrets: Secrets;
  /** undefined: an external server. */
  readonly nats: { readonly port: number } | undefined;
  readonly postgres: { readonly port: number; readonly database: string } | undefined;
  /** One line for people. */
  readonly printLine: (line: string) => void;
};

export type Servers = {
  readonly nats: Kept<NatsServer> | undefined;
  readonly postgres: Kept<Postgres> | undefined;
};

/**
 * Starts the NATS and the Postgres of this machine and starts them again when they die. Servers that a killed `up` left
 * running on these data are stopped first: the caller holds the lock.
 * @throws LocalServerError
 */
export async function startServers({ storeDir, secrets, nats, postgres, printLine }: StartServers): Promise<Servers> {
  const bin = binFolder();
  const startNats = async (port: number) =>
    startNatsServer({
      binary: await findNatsServer({ bin, log: printLine }),
      dataDir: join(storeDir, "nats"),
      port,
      user: natsUser,
      password: secrets.natsPassword,
      takeOver: true,
    });
  const startDatabase = async (port: number, database: string) => {
    const server = await startPostgres({
      dataDir: join(storeDir, "postgres"),
      port,
      password: secrets.postgresPassword,
      takeOver: true,
      ...(installation === "package" && { fetch: { folder: bin, log: printLine } }),
    });
    await server.ensureDatabase(database);
    return server;
  };
  const [storedNats, storedPostgres] = await Promise.allSettled([
    nats && keep("NATS", nats.port, startNats, printLine),
    postgres && keep("Postgres", postgres.port, (port) => startDatabase(port, postgres.database), printLine),
  ]);
  if (storedNats.status === "fulfilled" && storedPostgres.status === "fulfilled") {
    return { nats: storedNats.value, postgres: storedPostgres.value };
  }
  for (const started of [storedNats, storedPostgres]) {
    if (started.status === "fulfilled") await started.value?.[Symbol.asyncDispose]();
  }
  throw [storedNats, storedPostgres].find((started) => started.status === "rejected")?.reason;
}

/** Where the programs of servers are kept that were fetched. */
function binFolder(): string {
  if (installation === "package") return join(cacheFolder(process.env), "bin");
  return fileURLToPath(new URL("../../../../.tapedeck/bin", import.meta.url));
}
