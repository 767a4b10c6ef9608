import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { readConfig } from "@tapedeck/gateway/config";
import { startGateway } from "@tapedeck/gateway/gateway";
import { readConfig as readQueryConfig } from "@tapedeck/query/config";
import { startQuery } from "@tapedeck/query/query";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import { testAuthority } from "@tapedeck/shared/testing/certificates";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rawClient } from "../stack/raw-call.ts";
import { type Stack, startStack } from "../stack/stack.ts";
import { type EncryptedServers, startEncryptedServers } from "./encrypted-servers.ts";

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"),
);
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let servers: EncryptedServers;
let stack: Stack;
let env: Readonly<Record<string, string>>;
/** An authority that signed no certificate here. */
let stranger: string;

beforeAll(async () => {
  servers = cleanup.use(await startEncryptedServers());
  const { services, authority, nats } = servers;
  stranger = (await testAuthority(servers.folder, "stranger")).certFile;
  env = {
    TAPEDECK_NATS_CA: authority.certFile,
    TAPEDECK_SERVICES_TLS_CERT: services.certFile,
    TAPEDECK_SERVICES_TLS_KEY: services.keyFile,
    TAPEDECK_SERVICES_TLS_CA: authority.certFile,
    // The name in the certificates.
    TAPEDECK_QUERY_GRPC_HOST: "localhost",
    TAPEDECK_INGEST_GRPC_HOST: "localhost",
  };
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  stack = cleanup.use(
    await startStack({
      skaffold: [{ address: fake.address }],
      servers: { nats, database: servers.database() },
      env,
      connect: () => connect({ servers: nats.url, tls: { caFile: authority.certFile } }),
    }),
  );
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
});

const checksOf = async (address: string) =>
  ((await (await fetch(`http://${address}/readyz`)).json()) as { checks: Record<string, string> }).checks;

describe("with TLS between all services", () => {
  it("recorded events are served, and every service is ready", async () => {
    const { items } = JSON.parse((await stack.httpCall("GET", "/api/v1/operations?kind=build")).body);
    expect(items.length).toBeGreaterThan(0);
    for (const address of [stack.ingestHealth, stack.queryHealth, stack.http]) {
      expect(new Set(Object.values(await checksOf(address)))).toEqual(new Set(["ok"]));
    }
  });

  it("nothing is plaintext: neither NATS, nor Postgres, nor query and ingest", async () => {
    await expect(connect({ servers: servers.nats.url, tls: null, reconnect: false })).rejects.toThrow();
    const client = new Client(servers.database());
    await client.connect();
    const { rows } = await client.query(
      `select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tapedeck-query'`,
    );
    await client.end();
    expect(rows).toEqual([{ ssl: true }]);
    for (const address of [stack.parts.query.addresses.grpc, stack.parts.ingest.addresses.grpc]) {
      using plain = rawClient(address, credentials.createInsecure());
      expect(await plain.code("/tapedeck.v1.Query/Position")).toBe(14);
    }
  });

  it("metrics say until when the certificates of query and ingest are valid", async () => {
    for (const address of [stack.ingestHealth, stack.queryHealth]) {
      const text = await (await fetch(`http://${address}/metrics`)).text();
      const [, value] =
        /^tapedeck_certificate_expiry_timestamp_seconds\{setting="services.tls".*\} (\S+)$/m.exec(text) ?? [];
      expect(Number(value) - Date.now() / 1_000).toBeGreaterThan(300 * 86_400);
    }
  });
});

describe("a certificate of another authority is refused with the reason", () => {
  it("by everybody who connects to NATS", async () => {
    const settings = { url: `tls://${servers.nats.url}`, ca: stranger };
    await expect(connectNats("test", settings, silentLogger)).rejects.toThrow(
      /^the certificate of the nats-server at 127\.0\.0\.1:\d+ is not trusted \(.*\): name its authority in nats.ca$/,
    );
  });

  it("by a service that asks for TLS where NATS has none", async () => {
    const plain = cleanup.use(await startTestNats());
    const settings = { url: `tls://127.0.0.1:${plain.port}` };
    await expect(connectNats("test", settings, silentLogger)).rejects.toThrow(/tls/);
  });

  it("by query, of Postgres", async () => {
    const other = { ...env, TAPEDECK_POSTGRES_URL: servers.database(stranger), TAPEDECK_NATS_URL: servers.nats.url };
    const ports = { TAPEDECK_QUERY_GRPC_PORT: "0", TAPEDECK_QUERY_HEALTH_PORT: "0" };
    await using query = await startQuery(
      readQueryConfig({ env: { ...other, ...ports, TAPEDECK_SERVICES_KEY: "k" } }),
      silentLogger,
    );
    expect((await checksOf(query.addresses.health)).database).toMatch(/certificate/);
  });

  it("by the gateway, of query", async () => {
    const config = readConfig({
      env: {
        ...env,
        TAPEDECK_SERVICES_TLS_CA: stranger,
        TAPEDECK_NATS_URL: servers.nats.url,
        TAPEDECK_QUERY_ADDRESS: stack.parts.query.addresses.grpc,
        TAPEDECK_INGEST_ADDRESS: stack.parts.ingest.addresses.grpc,
        TAPEDECK_SERVICES_KEY: "test-key",
        TAPEDECK_GATEWAY_GRPC_PORT: "0",
        TAPEDECK_GATEWAY_HTTP_PORT: "0",
      },
    });
    await using gateway = await startGateway(config, silentLogger);
    const reason = async () => (await checksOf(gateway.addresses.http ?? "")).query ?? "";
    await until(async () => /certificate/.test(await reason()), { message: "the reason" });
  });
});
