import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { spawnServer } from "@tapedeck/infra/local/server-process";
import { type ConnectedLogs, LogConnector } from "@tapedeck/shared/log/connect-log";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { testAuthority } from "@tapedeck/shared/testing/certificates";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { expect, inject, it } from "vitest";
import { loginOf, passwordsEnv, readUsers, usersFile } from "../operations/nats-users.ts";

const shipped = join(import.meta.dirname, "../../infra/nats/cluster.conf");

// Three servers with infra/nats/cluster.conf, but for their names, ports and paths.
it("a log is kept by three servers with the configuration for a cluster", async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(inject("serversFolder"), "shipped-cluster-"));
  const authority = await testAuthority(folder, "authority");
  const { certFile, keyFile } = await authority.issue(folder, "nats");
  const nodes = await Promise.all([1, 2, 3].map(async (n) => ({ n, port: await ownPort(), route: await ownPort() })));
  const text = await readFile(shipped, "utf8");
  expect(text).toContain("sync_interval: always");
  for (const { n, port, route } of nodes) {
    const own = join(folder, `nats-${n}`);
    await mkdir(own);
    await writeFile(join(own, usersFile), await readUsers());
    const changes: Readonly<Record<string, string>> = {
      "server_name: nats-1": `server_name: nats-${n}`,
      "0.0.0.0:4222": `"127.0.0.1:${port}"`,
      "0.0.0.0:6222": `"127.0.0.1:${route}"`,
      "/var/lib/nats": JSON.stringify(join(own, "store")),
      "/etc/nats/cert.pem": JSON.stringify(certFile),
      "/etc/nats/key.pem": JSON.stringify(keyFile),
      "/etc/nats/ca.pem": JSON.stringify(authority.certFile),
      ...Object.fromEntries(nodes.map((one) => [`nats://nats-${one.n}:6222`, `"nats://127.0.0.1:${one.route}"`])),
    };
    const adapted = Object.entries(changes).reduce((all, [from, to]) => all.replaceAll(from, to), text);
    const file = join(own, "cluster.conf");
    await writeFile(file, adapted);
    const server = await spawnServer({
      command: inject("natsServer"),
      args: ["-c", file],
      mark: file,
      env: passwordsEnv,
      logFile: join(own, "nats-server.log"),
      stopSignal: "SIGTERM",
    });
    cleanup.defer(() => server.stop());
  }
  const { TAPEDECK_NATS_USER: user, TAPEDECK_NATS_PASSWORD: password } = loginOf("ingest");
  const url = nodes.map(({ port }) => `tls://127.0.0.1:${port}`).join(",");
  const settings = { url, user, password, ca: authority.certFile, syncAlways: true, replicas: 3 };
  const connector = new LogConnector({ service: "ingest", settings, logger: silentLogger, create: true });
  const withLog = async (connected: ConnectedLogs) => {
    await connected.logs.of("default");
    return connected;
  };
  const log = cleanup.use(await until(() => connector.open(withLog), { message: "the log" }));
  const { cluster } = await log.nats
    .request(`$JS.API.STREAM.INFO.${streamOf("default")}`)
    .then((answer) => answer.json<{ cluster: { leader: string; replicas: readonly { name: string }[] } }>());
  expect([cluster.leader, ...cluster.replicas.map(({ name }) => name)].sort()).toEqual(["nats-1", "nats-2", "nats-3"]);
});
