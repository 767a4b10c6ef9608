import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { describe, expect, inject, it } from "vitest";
import { readUpSettings, serviceEnv } from "./settings.ts";

const options = { data: ".tapedeck" };
const open = { TAPEDECK_GATEWAY_HTTP_HOST: "0.0.0.0" };
const secrets = { natsPassword: "a", postgresPassword: "b", servicesKey: "c" };

it("a settings file without sources turns the demo off, which --demo turns on again", async () => {
  const config = join(await mkdtemp(join(inject("serversFolder"), "up-")), "tapedeck.yaml");
  await writeFile(config, 'gateway: { sinkHosts: ["127.0.0.1:18099"] }');
  const of = (more: object) => readUpSettings({ ...options, ...more }, {});
  expect(of({})).toMatchObject({ mode: "demo", isDemoOff: false });
  expect(of({ config })).toMatchObject({ mode: "record", isDemoOff: true });
  expect(of({ config, demo: false })).toMatchObject({ mode: "record", isDemoOff: false });
  expect(of({ config, demo: true })).toMatchObject({ mode: "demo", isDemoOff: false });
  expect(of({ config, skaffold: "127.0.0.1:50051" })).toMatchObject({ mode: "record", isDemoOff: false });
});

describe("beyond this machine", () => {
  it("it listens with TLS and tokens, or where --insecure says so", async () => {
    expect(() => readUpSettings(options, open)).toThrow(
      /gateway.http.host: .* needs tls.cert and tls.key, auth: tokens/,
    );

    const { certFile, keyFile } = await testCertificate(await mkdtemp(join(inject("serversFolder"), "up-")));
    const safe = { ...open, TAPEDECK_AUTH: "tokens", TAPEDECK_TLS_CERT: certFile, TAPEDECK_TLS_KEY: keyFile };
    expect(readUpSettings(options, safe).access).toMatchObject({ tls: true, auth: "tokens" });

    const settings = readUpSettings({ ...options, insecure: true }, open);
    expect(settings.listeners.gatewayHttp.host).toBe("0.0.0.0");
    expect(serviceEnv(settings, settings.listeners, [], secrets)).toMatchObject({ TAPEDECK_INSECURE: "true" });
  });

  it("certificates between services are for services on several machines", () => {
    const files = { TAPEDECK_SERVICES_TLS_CERT: "/nowhere/cert.pem", TAPEDECK_SERVICES_TLS_KEY: "/nowhere/key.pem" };
    expect(() => readUpSettings(options, files)).toThrow(/services.tls: only for services that are started one by one/);
  });

  it("the certificate is checked before anything starts", () => {
    const missing = { TAPEDECK_TLS_CERT: "/nowhere/cert.pem", TAPEDECK_TLS_KEY: "/nowhere/key.pem" };
    expect(() => readUpSettings(options, missing)).toThrow(
      "tls.cert: /nowhere/cert.pem can't be read (there is no such file)",
    );
  });
});
