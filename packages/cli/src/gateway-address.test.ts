import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { bearer, grpcTarget, httpBase } from "./gateway-address.ts";

const told = (text: string, env = {}) => {
  const { address, name, credentials } = grpcTarget(text, env);
  return [address, name, credentials._isSecure()];
};

test("plaintext by host and port, TLS by https, each with its own port", () => {
  expect(told("127.0.0.1:7051")).toEqual(["127.0.0.1:7051", "127.0.0.1:7051", false]);
  expect(told("LOCALHOST:80")).toEqual(["localhost:80", "localhost:80", false]);
  expect(told("http://[::1]")).toEqual(["[::1]:7051", "[::1]:7051", false]);
  expect(told("https://tapedeck.example")).toEqual(["tapedeck.example:7051", "https://tapedeck.example:7051", true]);
  expect(told("https://Tapedeck.example:443/")).toEqual(["tapedeck.example:443", "https://tapedeck.example:443", true]);
  expect(httpBase("https://tapedeck.example:443").base).toBe("https://tapedeck.example:443");
  expect(httpBase("https://tapedeck.example/deck/").base).toBe("https://tapedeck.example:7052/deck");
  expect(httpBase("127.0.0.1:80").base).toBe("http://127.0.0.1:80");
});

test.each([
  "tapedeck.example",
  "7051",
  ":7051",
  "a b:1",
  "h:0",
  "h:65536",
  "ftp://h:1",
  "https://u:p@h",
  "https://h/x",
])("%s is not an address", (text) => expect(() => grpcTarget(text, {})).toThrow(`${text} is not an address`));

test("plaintext leaves this machine only where that is said, and with a token never", () => {
  const [far, token] = ["10.0.0.5:7051", { TAPEDECK_TOKEN: "tdk_secret" }];
  for (const place of [grpcTarget, httpBase]) {
    expect(() => place(far, {})).toThrow(/not on this machine.*write https:\/\/10.0.0.5:7051/);
    expect(() => place(far, { TAPEDECK_INSECURE: "true" })).not.toThrow();
    expect(() => place(far, { TAPEDECK_INSECURE: "true", ...token })).toThrow(/token.*is not sent/);
    expect(() => place("127.0.0.1.example:7051", token)).toThrow(/token.*is not sent/);
  }
  expect(grpcTarget("https://10.0.0.5", token).metadata.get("authorization")).toEqual(["Bearer tdk_secret"]);
  expect(grpcTarget("127.9.0.1:7051", token).metadata.get("authorization")).toEqual(["Bearer tdk_secret"]);
  expect(httpBase("http://localhost", token).headers).toEqual({ authorization: "Bearer tdk_secret" });
});

test("a token that can't be one is refused and not shown", () => {
  expect(bearer({})).toBeUndefined();
  expect(bearer({ TAPEDECK_TOKEN: " tdk_x\n" })).toBe("Bearer tdk_x");
  const broken = () => bearer({ TAPEDECK_TOKEN: "tdk_x\ny" });
  expect(broken).toThrow("TAPEDECK_TOKEN is not a token");
  expect(broken).not.toThrow("tdk_x");
});

test("TAPEDECK_CA is all that is trusted, and has to be a certificate", () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-address-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [first = ""] = getCACertificates("bundled");
  writeFileSync(join(folder, "ca.pem"), first);
  writeFileSync(join(folder, "empty.pem"), "");
  const withCa = (name: string) => ({ TAPEDECK_CA: join(folder, name) });
  httpBase("https://tapedeck.example", withCa("ca.pem"));
  expect(getCACertificates("default")).toHaveLength(1);
  expect(() => grpcTarget("https://tapedeck.example", withCa("empty.pem"))).toThrow(/holds no certificate/);
  expect(() => grpcTarget("https://tapedeck.example", withCa("none.pem"))).toThrow(/can't be read/);
  expect(() => grpcTarget("127.0.0.1:7051", withCa("none.pem"))).not.toThrow();
});
