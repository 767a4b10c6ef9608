import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { afterAll, expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";
import { startEncryptedServers } from "./encrypted-servers.ts";
import { shownCertificate } from "./shown-certificate.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

const fingerprint = async (address: string) => (await shownCertificate(address)).fingerprint256;

it("renewed certificates are used without a restart of any service, and recording goes on", async () => {
  const servers = cleanup.use(await startEncryptedServers());
  const { services, authority, nats } = servers;
  const recording = loadRecording(
    join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"),
  );
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  const stack = cleanup.use(
    await startStack({
      skaffold: [{ address: fake.address }],
      servers: { nats, database: servers.database() },
      env: {
        TAPEDECK_NATS_CA: authority.certFile,
        TAPEDECK_SERVICES_TLS_CERT: services.certFile,
        TAPEDECK_SERVICES_TLS_KEY: services.keyFile,
        TAPEDECK_SERVICES_TLS_CA: authority.certFile,
        TAPEDECK_QUERY_GRPC_HOST: "localhost",
        TAPEDECK_INGEST_GRPC_HOST: "localhost",
      },
      connect: () => connect({ servers: nats.url, tls: { caFile: authority.certFile } }),
    }),
  );
  await fake.playUntil({ v1: 5 });
  await stack.recorded({ v1: 5 });
  const addresses = [stack.parts.query.addresses.grpc, stack.parts.ingest.addresses.grpc];
  const before = new X509Certificate(services.cert).fingerprint256;
  expect(await Promise.all(addresses.map(fingerprint))).toEqual([before, before]);

  await servers.renew();
  // Services check for renewed files once a minute.
  const areNew = async () => (await Promise.all(addresses.map(fingerprint))).every((print) => print !== before);
  await until(areNew, { message: "query and ingest to show the renewed certificate" });
  // Forces all services to reconnect to NATS and Postgres.
  await nats.restart();
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
  const ready = async () => JSON.parse((await stack.httpCall("GET", "/readyz")).body).ready === true;
  await until(ready, { message: "the gateway to be ready" });
  const { items } = JSON.parse((await stack.httpCall("GET", "/api/v1/operations?kind=build")).body);
  expect(items.length).toBeGreaterThan(0);
});
