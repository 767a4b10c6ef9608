import { X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { readConfig } from "@tapedeck/gateway/config";
import { type Gateway, startGateway } from "@tapedeck/gateway/gateway";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import { type TestAuthority, testAuthority } from "@tapedeck/shared/testing/certificates";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { gatewayEnv, type Stack, startStack } from "../stack/stack.ts";
import { type EncryptedServers, startEncryptedServers } from "./encrypted-servers.ts";
import { shownCertificate } from "./shown-certificate.ts";

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/01-dev-success-3-artifacts-5-iterations"),
);
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let servers: EncryptedServers;
let another: TestAuthority;
/** The file that all settings name. */
let trusted: string;

beforeAll(async () => {
  servers = cleanup.use(await startEncryptedServers());
  another = await testAuthority(servers.folder, "another");
  trusted = join(servers.folder, "trusted.pem");
});

async function trust(...authorities: readonly TestAuthority[]): Promise<void> {
  const certificates = await Promise.all(authorities.map(({ certFile }) => readFile(certFile, "utf8")));
  await writeFile(trusted, certificates.map((text) => `${text.trim()}\n`).join(""));
}

/** Ends what is connected to NATS and Postgres, so that everybody has to connect, and to trust, again. */
async function connectAgain(): Promise<void> {
  await servers.nats.restart();
  const admin = new Client(servers.database(trusted));
  await admin.connect();
  await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tapedeck-query'");
  await admin.end();
}

const tls = () => ({
  TAPEDECK_NATS_CA: trusted,
  TAPEDECK_SERVICES_TLS_CERT: servers.services.certFile,
  TAPEDECK_SERVICES_TLS_KEY: servers.services.keyFile,
  TAPEDECK_SERVICES_TLS_CA: trusted,
  TAPEDECK_QUERY_GRPC_HOST: "localhost",
  TAPEDECK_INGEST_GRPC_HOST: "localhost",
});

/** Starts a gateway in the place of the stack's own: `services.tls.ca` is read at the start. */
async function restarted(before: Gateway, stack: Stack): Promise<Gateway> {
  await before[Symbol.asyncDispose]();
  const env = { ...gatewayEnv(stack.parts), ...tls(), TAPEDECK_WORKSPACE: "default" };
  return cleanup.use(await startGateway(readConfig({ env }), silentLogger));
}

async function isReady({ addresses }: Gateway): Promise<boolean> {
  const answer = await fetch(`http://${addresses.http}/readyz`);
  if (!answer.ok) throw new Error(await answer.text());
  return true;
}

it("another authority takes the place of the first, while recording goes on", async () => {
  const { authority, nats, services } = servers;
  await trust(authority);
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  const stack = cleanup.use(
    await startStack({
      skaffold: [{ address: fake.address }],
      servers: { nats, database: servers.database(trusted) },
      env: tls(),
      connect: () => connectThroughRestarts(nats.url, { tls: { caFile: trusted } }),
    }),
  );
  await fake.playUntil({ v1: 10 });
  await stack.recorded({ v1: 10 });

  // Both are trusted, and certificates are still those of the first.
  await trust(authority, another);
  let gateway = await restarted(stack.parts.gateway, stack);
  await connectAgain();
  await fake.playUntil({ v1: 20 });
  await stack.recorded({ v1: 20 });

  // Certificates are those of the other.
  await servers.renew(another);
  const addresses = [stack.parts.query.addresses.grpc, stack.parts.ingest.addresses.grpc];
  const issuer = new X509Certificate(await readFile(another.certFile));
  const areOfOther = async () =>
    (await Promise.all(addresses.map(shownCertificate))).every((shown) => shown.verify(issuer.publicKey));
  await until(areOfOther, { message: "query and ingest to show the new certificates" });
  await connectAgain();
  await fake.playUntil({ v1: 30 });
  await stack.recorded({ v1: 30 });
  await until(() => isReady(gateway), { message: "the gateway to be ready" });

  // The first is trusted no more.
  await trust(another);
  gateway = await restarted(gateway, stack);
  await connectAgain();
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
  await until(() => isReady(gateway), { message: "the gateway to be ready with the other authority alone" });
  const answer = await fetch(`http://${gateway.addresses.http}/api/v1/operations?kind=build`);
  expect(((await answer.json()) as { items: object[] }).items.length).toBeGreaterThan(0);
  expect(new X509Certificate(await readFile(services.certFile)).verify(issuer.publicKey)).toBe(true);
  const onlyFirst = connectNats("test", { url: `tls://${nats.url}`, ca: authority.certFile }, silentLogger);
  await expect(onlyFirst).rejects.toThrow("is not trusted");
});
