import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Postgres, startPostgres } from "@tapedeck/infra/local/postgres";
import { until } from "@tapedeck/shared/testing/until";
import { inject } from "vitest";

export type OwnPostgres = AsyncDisposable & {
  /** Connection string of its database; stays the same over restarts. */
  readonly url: string;
  /** Sends SIGKILL to the server and so to all its processes; resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts on the same port and data; resolves when it accepts connections. */
  start(): Promise<void>;
};

/** Starts a Postgres as in production (fsync), used by the caller alone. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const dataDir = join(inject("serversFolder"), `postgres-${randomBytes(6).toString("hex")}`);
  let server: Postgres = await startPostgres({ dataDir, port: 0, persistent: false });
  const { port } = server;
  await server.ensureDatabase("tapedeck");
  return {
    url: server.url("tapedeck"),
    kill: async () => {
      await server.kill("SIGKILL");
    },
    start: async () => {
      server = await until(() => startPostgres({ dataDir, port, persistent: false }), {
        message: "Postgres to start again",
      });
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
