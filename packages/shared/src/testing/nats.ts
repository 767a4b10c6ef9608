import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type NatsServer, startNatsServer } from "@tapedeck/infra/local/nats-server";
import { inject } from "vitest";
import { ownPort } from "./own-port.ts";
import type {} from "./servers.ts";

export type TestNats = AsyncDisposable & {
  /** Stays the same over restarts. */
  readonly url: string;
  readonly port: number;
  /** Its files; `streamFolder` is where those of a stream's messages are. */
  readonly dataDir: string;
  readonly streamFolder: (stream: string) => string;
  /** SIGKILL; resolves when the server is gone. */
  kill(): Promise<void>;
  /** A clean stop; resolves when the server is gone. */
  stop(): Promise<void>;
  /** Starts it again on the same port and data, after a clean stop if it still runs; resolves when it accepts connections. */
  restart(more?: Pick<StartTestNats, "maxFileStore">): Promise<void>;
};

export type StartTestNats = {
  /** Every acknowledged message is on disk, as in production. Default false: a kill loses nothing either way. */
  readonly syncAlways?: boolean;
  /** What it may store, such as "1MB"; default: as much as the disk has. */
  readonly maxFileStore?: string;
  readonly user?: string;
  readonly password?: string;
};

/** Starts a nats-server that belongs to the caller alone, with a data directory that goes with it. */
export const startTestNats = async ({ syncAlways = false, ...credentials }: StartTestNats = {}): Promise<TestNats> => {
  const dataDir = await mkdtemp(join(inject("serversFolder"), "nats-"));
  const start = (port: number, more: Pick<StartTestNats, "maxFileStore"> = {}): Promise<NatsServer> =>
    startNatsServer({ binary: inject("natsServer"), dataDir, port, syncAlways, ...credentials, ...more });

  let server = await start(await ownPort());
  const { url, port } = server;
  const stop = () => server.stop();
  return {
    url,
    port,
    dataDir,
    streamFolder: (stream) => join(dataDir, "store", "jetstream", "$G", "streams", stream, "msgs"),
    stop,
    kill: async () => {
      await server.kill("SIGKILL");
    },
    restart: async (more) => {
      await stop();
      server = await start(port, more);
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
};
