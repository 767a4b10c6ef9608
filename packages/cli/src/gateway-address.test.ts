import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { httpBase } from "./gateway-address.ts";
import { grpcEndpoint } from "./grpc-endpoint.ts";
import { grpcTarget } from "./grpc-target.ts";
import { contextsPath, writeContexts } from "./targets/contexts.ts";

const empty = mkdtempSync(join(tmpdir(), "gateway-address-"));
afterAll(() => rmSync(empty, { recursive: true }));
/** Nobody has logged in. */
const none = { XDG_CONFIG_HOME: empty };

const reported = (text: string, more = {}) => {
  const env = { ...none, ...more };
  const target = grpcTarget(text, env);
  const { address, credentials } = grpcEndpoint(target);
  return [address, target.name, credentials._isSecure()];
};

it("plaintext by host and port, TLS by https; gRPC is on the port below, or where it is said to be", () => {
  expect(reported("127.0.0.1:7052")).toEqual(["127.0.0.1:7051", "127.0.0.1:7051", false]);
  expect(reported("LOCALHOST:81")).toEqual(["localhost:80", "localhost:80", false]);
  expect(reported("http://[::1]")).toEqual(["[::1]:7051", "[::1]:7051", false]);
  expect(reported("https://tapedeck.example")).toEqual([
    "tapedeck.example:7051",
    "https://tapedeck.example:7051",
    true,
  ]);
  const both = { TAPEDECK_GRPC_PORT: "443" };
  expect(reported("https://Tapedeck.example:443/", both)).toEqual([
    "tapedeck.example:443",
    "https://tapedeck.example:443",
    true,
  ]);
  expect(() => reported("https://h", { TAPEDECK_GRPC_PORT: "x" })).toThrow('TAPEDECK_GRPC_PORT is not a port: "x"');
  expect(httpBase("https://tapedeck.example:443", none).base).toBe("https://tapedeck.example:443");
  expect(httpBase("https://tapedeck.example/deck/", none).base).toBe("https://tapedeck.example:7052/deck");
  expect(httpBase("127.0.0.1:80", none).base).toBe("http://127.0.0.1:80");
});

it("TAPEDECK_URL names it for every command", () => {
  expect(httpBase(undefined, { ...none, TAPEDECK_URL: "https://h:1" }).base).toBe("https://h:1");
  expect(grpcTarget(undefined, { ...none, TAPEDECK_URL: "https://h:7052" }).address).toBe("h:7051");
});

it("without a name it is the context in use, else this machine's as its settings have it", () => {
  const home = mkdtempSync(join(tmpdir(), "gateway-address-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const env = { XDG_CONFIG_HOME: home };
  expect(httpBase(undefined, { ...env, TAPEDECK_GATEWAY_HTTP_PORT: "81" }).base).toBe("http://127.0.0.1:81");
  expect(grpcTarget(undefined, { ...env, TAPEDECK_GATEWAY_GRPC_PORT: "82" }).address).toBe("127.0.0.1:82");

  const team = { url: "https://tapedeck.example:7052", grpcPort: 443, token: "tdk_kept" };
  writeContexts(env, { current: "team", contexts: { team } });
  expect(statSync(contextsPath(env)).mode & 0o777).toBe(0o600);
  expect(grpcTarget(undefined, env)).toMatchObject({ address: "tapedeck.example:443" });
  expect(httpBase(undefined, env)).toMatchObject({ token: "tdk_kept", base: "https://tapedeck.example:7052" });
  // By its address too, and nobody else is given its token.
  expect(httpBase("https://tapedeck.example", env).token).toBe("tdk_kept");
  for (const other of ["https://tapedeck.example:1", "https://other.example", "http://127.0.0.1"]) {
    expect(httpBase(other, env)).toMatchObject({ token: undefined, headers: {} });
  }
  expect(httpBase(undefined, { ...env, TAPEDECK_TOKEN: "tdk_x" }).token).toBe("tdk_x");
  // The token does not go there in plaintext either.
  writeContexts(env, { current: "team", contexts: { team: { ...team, url: "http://10.0.0.5:7052" } } });
  expect(() => httpBase(undefined, env)).toThrow(/token of context team is not sent to 10.0.0.5:7052 in plaintext/);
});

it.each(["tapedeck.example", "7051", ":7051", "a b:1", "h:0", "h:65536", "ftp://h:1", "https://u:p@h"])(
  "%s is not an address",
  (text) => expect(() => grpcTarget(text, none)).toThrow(`${text} is not an address`),
);

it("plaintext leaves this machine only where that is said, and with a token never", () => {
  const [far, token] = ["10.0.0.5:7052", { ...none, TAPEDECK_TOKEN: "tdk_secret" }];
  for (const place of [grpcTarget, httpBase]) {
    expect(() => place(far, none)).toThrow(/not on this machine.*use https:\/\/10.0.0.5:7052/);
    expect(() => place(far, { ...none, TAPEDECK_INSECURE: "true" })).not.toThrow();
    expect(() => place(far, { TAPEDECK_INSECURE: "true", ...token })).toThrow(/token.*is not sent/);
    expect(() => place("127.0.0.1.example:7051", token)).toThrow(/token.*is not sent/);
  }
  for (const text of ["https://10.0.0.5", "127.9.0.1:7051"]) {
    const { metadata } = grpcEndpoint(grpcTarget(text, token));
    expect(metadata.get("authorization")).toEqual(["Bearer tdk_secret"]);
  }
  expect(httpBase("http://localhost", token).headers).toEqual({ authorization: "Bearer tdk_secret" });
});

it("a token that can't be one is refused and not shown", () => {
  const of = (text: string) => httpBase("http://localhost", { ...none, TAPEDECK_TOKEN: text });
  expect(of("").headers).toEqual({});
  expect(of(" tdk_x\n").headers).toEqual({ authorization: "Bearer tdk_x" });
  expect(() => of("tdk_x\ny")).toThrow("TAPEDECK_TOKEN is not a token");
  expect(() => of("tdk_x\ny")).not.toThrow("tdk_x");
});

it("TAPEDECK_CA is all that is trusted, and has to be a certificate", () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-address-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [first = ""] = getCACertificates("bundled");
  writeFileSync(join(folder, "ca.pem"), first);
  writeFileSync(join(folder, "empty.pem"), "");
  const withCa = (name: string) => ({ ...none, TAPEDECK_CA: join(folder, name) });
  httpBase("https://tapedeck.example", withCa("ca.pem"));
  expect(getCACertificates("default")).toHaveLength(1);
  expect(() => grpcTarget("https://tapedeck.example", withCa("empty.pem"))).toThrow(/holds no certificate/);
  expect(() => grpcTarget("https://tapedeck.example", withCa("none.pem"))).toThrow(/can't be read/);
  expect(() => grpcTarget("127.0.0.1:7052", withCa("none.pem"))).not.toThrow();
});
