import { readConfig } from "@tapedeck/gateway/config";
import { startGateway } from "@tapedeck/gateway/gateway";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { expect, it } from "vitest";
import { check, checkedServices } from "./check.ts";

it("distinguishes a service that lives from one that can serve, on all addresses and with TLS", async () => {
  await using temporary = await temporaryFolder();
  const { certFile, keyFile } = await testCertificate(temporary.folder, ["deck.example"]);
  const nowhere = `127.0.0.1:${await ownPort()}`;
  const env = {
    TAPEDECK_GATEWAY_HTTP_HOST: "0.0.0.0",
    TAPEDECK_GATEWAY_HTTP_PORT: `${await ownPort()}`,
    TAPEDECK_GATEWAY_GRPC_PORT: "0",
    TAPEDECK_QUERY_HEALTH_PORT: `${await ownPort()}`,
    TAPEDECK_INGEST_HEALTH_PORT: `${await ownPort()}`,
    TAPEDECK_AUTH: "tokens",
    TAPEDECK_SERVICES_KEY: "key",
    TAPEDECK_TLS_CERT: certFile,
    TAPEDECK_TLS_KEY: keyFile,
    // Nothing answers there: the gateway lives, and can't serve.
    TAPEDECK_NATS_URL: `nats://${nowhere}`,
    TAPEDECK_QUERY_ADDRESS: nowhere,
  };
  {
    await using _gateway = await startGateway(readConfig({ env }), silentLogger);
    expect(await check(checkedServices, "/healthz", { env })).toEqual({
      isWell: true,
      text: expect.stringMatching(/^gateway: \{"status":"ok"/),
    });
    const { isWell, text } = await check(checkedServices, "/readyz", { env });
    expect([isWell, text]).toEqual([false, expect.stringMatching(/^gateway: .*"ready":false/)]);
    expect((await check(["query"], "/healthz", { env })).isWell).toBe(false);
  }
  const closed = await check(checkedServices, "/healthz", { env });
  expect([closed.isWell, closed.text]).toEqual([false, expect.stringContaining("gateway: connect ECONNREFUSED")]);
});
