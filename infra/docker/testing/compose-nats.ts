import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { spawnServer, untilReady } from "@tapedeck/infra/local/server-process";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { inject } from "vitest";
import { root } from "../../dist/places.ts";

export type ComposeNats = AsyncDisposable & {
  readonly url: string;
  /** The login of a service, or of the command line, as compose.yaml gives it. */
  readonly loginOf: (user: NatsUser) => Readonly<Record<string, string>>;
  /** What it has logged so far. */
  readonly logged: () => Promise<string>;
};

export const natsUsers = ["ingest", "query", "gateway", "cli"] as const;
export type NatsUser = (typeof natsUsers)[number];

/** A nats-server with the configuration of compose.tls.yaml, on a port of its own and with this certificate. */
export async function startComposeNats(certificate: {
  readonly certFile: string;
  readonly keyFile: string;
}): Promise<ComposeNats> {
  const folder = await mkdtemp(join(inject("serversFolder"), "nats-"));
  const port = await ownPort();
  const here: Readonly<Record<string, string>> = {
    "0.0.0.0:4222": `127.0.0.1:${port}`,
    "http: 127.0.0.1:8222": `ports_file_dir: ${JSON.stringify(folder)}`,
    "store_dir: /data": `store_dir: ${JSON.stringify(join(folder, "store"))}`,
    "/run/tls/tls.crt": JSON.stringify(certificate.certFile),
    "/run/tls/tls.key": JSON.stringify(certificate.keyFile),
  };
  const texts: string[] = [];
  for (const file of ["docker/nats.conf", "docker/nats-tls.conf", "nats/tapedeck-users.conf"]) {
    const text = await readFile(join(root, "infra", file), "utf8");
    texts.push(text);
    const adapted = Object.entries(here).reduce((so, [from, to]) => so.replace(from, to), text);
    await writeFile(join(folder, basename(file)), adapted);
  }
  const missing = Object.keys(here).filter((each) => !texts.some((text) => text.includes(each)));
  if (missing.length > 0) throw new Error(`infra/docker no longer has ${missing.join(", ")}`);

  const passwordOf = (user: NatsUser) => `${user}-password`;
  const configFile = join(folder, "nats-tls.conf");
  const logFile = join(folder, "nats.log");
  const server = await spawnServer({
    command: inject("natsServer"),
    args: ["-c", configFile],
    mark: configFile,
    logFile,
    stopSignal: "SIGTERM",
    env: Object.fromEntries(
      natsUsers.map((user) => [`TAPEDECK_NATS_${user.toUpperCase()}_PASSWORD`, passwordOf(user)]),
    ),
  });
  const portsFile = join(folder, `nats-server_${server.pid}.ports`);
  const logged = () => readFile(logFile, "utf8");
  const isReady = await untilReady(server, () =>
    readFile(portsFile).then(
      () => true,
      () => undefined,
    ),
  );
  if (isReady === undefined) throw new Error(await logged());
  return {
    url: `tls://127.0.0.1:${port}`,
    logged,
    loginOf: (user) => ({ TAPEDECK_NATS_USER: user, TAPEDECK_NATS_PASSWORD: passwordOf(user) }),
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
