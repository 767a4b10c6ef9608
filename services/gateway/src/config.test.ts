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
  ["gateway: { origins: ['*'] }", 'gateway.origins: "*" is not an origin'],
  ["gateway: { origins: ['https://*'] }", 'gateway.origins: "https://*" would let every page of the web in'],
  ["gateway: { origins: ['https://dash.example.com/'] }", "without a path"],
  ["gateway: { origins: ['https://*.example.com'] }", "is not an origin"],
  ["auth: some", 'tapedeck.yaml: auth: "some" is not one of none, tokens'],
])("%s is a problem", (text, reason) => {
  expect(yaml(text)).toThrow(reason);
});

it("origins may be patterns", () => {
  expect(
    yaml("gateway: { origins: ['http://localhost:*', 'vscode-webview://*', 'http://[::1]:5173', 'null'] }"),
  ).not.toThrow();
});

describe("an endpoint that is open to viewers", () => {
  const endpoint = (host: string, open = "viewer") =>
    `endpoints: [{ source: a/b, grpc: '${host}:50051', open: ${open} }]`;

  it("is one on loopback", () => {
    expect(yaml(`${endpoint("127.0.0.1")}\n${tokens}`)).not.toThrow();
    expect(yaml(endpoint("localhost"))).not.toThrow();
  });

  it.each(["0.0.0.0", "10.0.0.1", "deck.example.com"])("is not at %s, whatever else is said", (host) => {
    const reason = /endpoints.0.grpc: ".*" is beyond loopback, where an endpoint can't be open: viewer/;
    for (const more of ["", "insecure: true", `${tls}\n${tokens}`]) {
      expect(yaml(`${endpoint(host)}\n${more}`)).toThrow(reason);
    }
  });

  it("gives no more than reading", () => {
    expect(yaml(endpoint("127.0.0.1", "controller"))).toThrow("expected viewer: more than reading needs a token");
  });
});

it.each(["hidden", "hidden-from-admins"])(
  "developers that are %s need tokens, and no endpoint that is open",
  (mode) => {
    const hidden = `privacy: { developers: ${mode} }`;
    expect(yaml(`${hidden}\nauth: none`)).toThrow(`privacy.developers: "${mode}" needs auth: tokens`);
    const open = "endpoints: [{ source: a/b, grpc: '127.0.0.1:50051', open: viewer }]";
    expect(yaml(`${hidden}\n${open}\n${tokens}`)).toThrow(`which privacy.developers: ${mode} forbids`);
    expect(yaml(`${hidden}\n${tokens}`)).not.toThrow();
  },
);

describe("an identity provider", () => {
  const oidc = (more = "", own = `issuer: https://sso.example, audience: api`) =>
    `${tokens}\noidc: { ${own}, grants: [{ claim: groups, value: devs, roles: [viewer] }]${more} }`;
  const page = ", clientId: page, pageUrl: 'https://deck.example:7052'";

  it("needs no more than an issuer, an audience and a grant", () => {
    expect(yaml(oidc())().oidc).toMatchObject({
      grants: [{ claim: "groups", value: "devs", roles: ["viewer"], workspace: "default" }],
      page: undefined,
    });
    expect(yaml(`${oidc(page)}\ngateway: { hosts: [deck.example] }`)().oidc?.page).toMatchObject({
      origin: "https://deck.example:7052",
    });
    expect(yaml(tokens)().oidc).toBeUndefined();
  });

  it.each([
    ["oidc: { issuer: 'https://sso.example', audience: api, grants: [] }", "oidc.issuer: needs auth: tokens"],
    [`${tokens}\noidc: { issuer: 'https://sso.example', audience: api }`, "oidc.grants: missing"],
    [oidc("", "issuer: https://sso.example"), "oidc.audience: missing"],
    [oidc("", "audience: api"), "oidc.issuer: missing"],
    [oidc("", "issuer: http://sso.example, audience: api"), "is not an https address"],
    [oidc("", "issuer: sso, audience: api"), "is not an https address"],
    [oidc(", clockSkew: 1h"), "oidc.clockSkew: at most 5m"],
    [oidc(", clientId: page"), "oidc.pageUrl: missing"],
    [oidc(", pageUrl: 'https://deck.example'"), "oidc.clientId: missing"],
    [oidc(page), 'oidc.pageUrl: "deck.example" is missing in gateway.hosts'],
    [oidc(", clientId: page, pageUrl: 'http://deck.example'"), "is not the address of the page"],
    [oidc(", clientId: page, pageUrl: 'https://deck.example/tapedeck'"), "is not the address of the page"],
    [oidc(", clientId: page, pageUrl: 'https://localhost', scopes: [profile]"), "oidc.scopes: openid is missing"],
    [
      `${tokens}\noidc: { issuer: 'https://s.example', audience: a, grants: [{ claim: g, value: v, roles: [god] }] }`,
      "oidc.grants.0.roles.0",
    ],
    [
      `${tokens}\noidc: { issuer: 'https://s.example', audience: a, grants: [{ claim: g, value: v, roles: [] }] }`,
      "oidc.grants.0.roles",
    ],
    [
      `${tokens}\noidc: { issuer: 'https://s.example', audience: a, grants: [{ claim: g, value: v, roles: [recorder] }] }`,
      "oidc.developerClaim: missing",
    ],
  ])("%s is a problem", (text, reason) => {
    expect(yaml(text)).toThrow(reason);
  });
});
