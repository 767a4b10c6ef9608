import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findNatsServer, type NatsServer, startNatsServer } from "@tapedeck/infra/local/nats-server";
import { type Postgres, startPostgres } from "@tapedeck/infra/local/postgres";
import type { Secrets } from "@tapedeck/infra/local/secrets";
import { backoff, delay } from "@tapedeck/shared/sync/delay";

export type StartServers = {
  readonly storeDir: string;
  readonly secrets: Secrets;
  /** undefined: somebody else runs it. */
  readonly nats: { readonly port: number } | undefined;
  readonly postgres: { readonly port: number; readonly database: string } | undefined;
  /** One line for people. */
  readonly say: (line: string) => void;
};

export type Servers = {
  readonly nats: Kept<NatsServer> | undefined;
  readonly postgres: Kept<Postgres> | undefined;
};

export type Kept<Server> = AsyncDisposable & {
  readonly current: () => Server;
  /** Stops it; it is started again at once. */
  readonly restart: () => Promise<void>;
};

export const natsUser = "tapedeck";

/**
 * Starts the NATS and the Postgres of this machine and starts them again when they die. Servers that a killed `up` left
 * running on these data are stopped first: the caller holds the lock.
 * @throws LocalServerError
 */
export async function startServers({ storeDir, secrets, nats, postgres, say }: StartServers): Promise<Servers> {
  const root = fileURLToPath(new URL("../../../../", import.meta.url));
  const startNats = async (port: number) =>
    startNatsServer({
      binary: await findNatsServer({ root, log: say }),
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
    });
    await server.ensureDatabase(database);
    return server;
  };
  const [keptNats, keptPostgres] = await Promise.allSettled([
    nats && keep("NATS", nats.port, startNats, say),
    postgres && keep("Postgres", postgres.port, (port) => startDatabase(port, postgres.database), say),
  ]);
  if (keptNats.status === "fulfilled" && keptPostgres.status === "fulfilled") {
    return { nats: keptNats.value, postgres: keptPostgres.value };
  }
  for (const started of [keptNats, keptPostgres]) {
    if (started.status === "fulfilled") await started.value?.[Symbol.asyncDispose]();
  }
  throw [keptNats, keptPostgres].find((started) => started.status === "rejected")?.reason;
}

type Server = { readonly port: number; readonly exited: Promise<unknown>; readonly stop: () => Promise<void> };

async function keep<S extends Server>(
  name: string,
  port: number,
  start: (port: number) => Promise<S>,
  say: (line: string) => void,
): Promise<Kept<S>> {
  let current = await start(port);
  const { port: kept } = current;
  const stopping = new AbortController();
  let isAsked = false;

  async function supervise(): Promise<void> {
    const wait = backoff(100, 5_000);
    while (!stopping.signal.aborted) {
      await current.exited;
      if (stopping.signal.aborted) return;
      if (!isAsked) say(`${name} exited unexpectedly and is restarted`);
      isAsked = false;
      for (let again = false; !again && !stopping.signal.aborted; ) {
        await delay(wait.next(), stopping.signal);
        if (stopping.signal.aborted) return;
        try {
          current = await start(kept);
          again = true;
        } catch (error) {
          say(`${name}: ${error instanceof Error ? error.message : error}`);
        }
      }
      wait.reset();
    }
  }

  const over = supervise();
  return {
    current: () => current,
    restart() {
      isAsked = true;
      return current.stop();
    },
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await current.stop();
      await over;
    },
  };
}
