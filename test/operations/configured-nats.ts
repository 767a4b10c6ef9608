import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { spawnServer, untilReady } from "@tapedeck/infra/local/server-process";
import type { TestNats } from "@tapedeck/shared/testing/nats";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { inject } from "vitest";
import { unpackStore } from "./releases.ts";

export type ConfiguredNats = TestNats & {
  /** Its log output so far. */
  logged(): Promise<string>;
  /** Rereads its configuration and the included files, as `nats-server --signal reload` does. */
  reload(): void;
};

export type ConfigureNats = {
  /** In the syntax of nats-server's configuration, besides listen and jetstream. Read at every start. */
  readonly configuration?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A tar of its initial data. */
  readonly store?: string;
  /** The configuration's included files, as texts by name. */
  readonly files?: Readonly<Record<string, string>>;
};

/** Starts a nats-server with the test's own configuration, such as one that Tapedeck ships. */
export async function startConfiguredNats({
  configuration = "",
  env = {},
  files = {},
  store,
}: ConfigureNats): Promise<ConfiguredNats> {
  const dataDir = await mkdtemp(join(inject("serversFolder"), "nats-"));
  const port = await ownPort();
  const configFile = join(dataDir, "nats.conf");
  const logFile = join(dataDir, "nats.log");
  await writeFile(
    configFile,
    `listen: "127.0.0.1:${port}"
max_payload: 8MB
ports_file_dir: ${JSON.stringify(dataDir)}
jetstream { store_dir: ${JSON.stringify(join(dataDir, "store"))}, max_file_store: 1PB }
${configuration}
`,
  );
  for (const [name, text] of Object.entries(files)) await writeFile(join(dataDir, name), text);
  if (store !== undefined) await unpackStore(store, join(dataDir, "store"));
  const logged = () => readFile(logFile, "utf8");
  const start = async () => {
    const options = { command: inject("natsServer"), args: ["-c", configFile], mark: configFile, env };
    const server = await spawnServer({ ...options, logFile, stopSignal: "SIGTERM" });
    const portsFile = `nats-server_${server.pid}.ports`;
    const isListening = async () => ((await readdir(dataDir)).includes(portsFile) ? true : undefined);
    if ((await untilReady(server, isListening)) === undefined) throw new Error(await logged());
    return server;
  };
  let server = await start();
  return {
    url: `127.0.0.1:${port}`,
    port,
    dataDir,
    streamFolder: (stream) => join(dataDir, "store", "jetstream", "TAPEDECK", "streams", stream, "msgs"),
    logged,
    reload: () => void process.kill(server.pid, "SIGHUP"),
    stop: () => server.stop(),
    kill: async () => void (await server.kill("SIGKILL")),
    restart: async () => {
      await server.stop();
      server = await start();
    },
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
