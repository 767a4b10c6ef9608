import { parseSettings } from "@tapedeck/shared/service/settings";
import { describe, expect, it } from "vitest";
import { readConfig } from "./config.ts";

const yaml = (text: string) => () => readConfig({ env: {}, file: parseSettings("tapedeck.yaml", text) });
const tls = "tls: { cert: cert.pem, key: key.pem }";
const tokens = "auth: tokens\nservices: { key: abc }";

describe("beyond loopback", () => {
  it.each([
    ["gateway: { grpc: { host: 0.0.0.0 } }", "gateway.grpc.host"],
    ["gateway: { http: { host: '::' } }", "gateway.http.host"],
    ["gateway: { http: { host: deck.example.com } }", "gateway.http.host"],
    ["endpoints: [{ source: a/b, grpc: '10.0.0.1:50051' }]", "endpoints.0.grpc"],
    ["endpoints: [{ source: a/b, http: '[::]:50052' }]", "endpoints.0.http"],
  ])("%s needs TLS and authentication, or a word that it is to be open", (text, key) => {
    expect(yaml(text)).toThrow(
      new RegExp(`${key}: ".*" is beyond loopback, which needs tls.cert and tls.key, auth: tokens`),
    );
    expect(yaml(`${text}\n${tls}`)).toThrow(`which needs auth: tokens`);
    expect(yaml(`${text}\n${tokens}`)).toThrow("which needs tls.cert and tls.key");
    expect(yaml(`${text}\n${tls}\nauth: none`)).toThrow(key);
    expect(yaml(`${text}\n${tls}\n${tokens}`)).not.toThrow();
    expect(yaml(`${text}\ninsecure: true`)).not.toThrow();
  });

  it.each(["127.0.0.1", "localhost", "::1", "127.8.9.10"])("%s is not", (host) => {
    expect(yaml(`gateway: { grpc: { host: '${host}' } }`)).not.toThrow();
  });
});

it.each([
  ["tls: { cert: cert.pem }", "tls.key: missing; TLS needs tls.cert and tls.key"],
  ["tls: { key: key.pem }", "tls.cert: missing; TLS needs tls.cert and tls.key"],
  ["auth: tokens", "services.key: missing"],
  ["auth: some", 'tapedeck.yaml: auth: "some" is not one of none, tokens'],
])("%s is a problem", (text, problem) => {
  expect(yaml(text)).toThrow(problem);
});
