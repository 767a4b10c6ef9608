import { describe, expect, it } from "vitest";
import { refusalOf } from "./host-origin.ts";

const allowed = { hosts: ["deck.example.com"], origins: ["https://dash.example.com"] };

describe("Host and Origin", () => {
  it.each([
    ["curl on loopback", { host: "127.0.0.1:7052" }],
    ["a name for loopback", { host: "localhost:7052" }],
    ["IPv6 loopback", { host: "[::1]:7052" }],
    ["a configured host", { host: "deck.example.com" }],
    ["our own page", { host: "127.0.0.1:7052", origin: "http://127.0.0.1:7052" }],
    ["an allowed page", { host: "127.0.0.1:7052", origin: "https://dash.example.com" }],
  ])("%s passes", (_, headers) => {
    expect(refusalOf(headers, allowed)).toBeUndefined();
  });

  it.each([
    ["a rebound name", { host: "evil.example" }, /Host "evil.example"/],
    ["no Host", {}, /Host ""/],
    ["a page from elsewhere", { host: "127.0.0.1:7052", origin: "http://evil.example" }, /Origin/],
    ["a page on another port", { host: "127.0.0.1:7052", origin: "http://127.0.0.1:8080" }, /Origin/],
    ["a sandboxed page", { host: "127.0.0.1:7052", origin: "null" }, /Origin/],
    ["an image on a foreign page", { host: "127.0.0.1:7052", "sec-fetch-site": "cross-site" as const }, /cross-site/],
  ])("%s is refused", (_, headers, reason) => {
    expect(refusalOf(headers, allowed)?.message).toMatch(reason);
  });

  it("of an origin alone a page may know", () => {
    const page = { host: "127.0.0.1:7052", origin: "http://evil.example" };
    expect(refusalOf(page, allowed)).toMatchObject({ ofOrigin: true });
    expect(refusalOf({ ...page, host: "evil.example" }, allowed)).toMatchObject({ ofOrigin: false });
  });
});

describe("patterns of origins", () => {
  const patterns = [
    ...["http://localhost:*", "http://[::1]:*", "vscode-webview://*"],
    ...["https://dash.example.com", "http://dash.example.com:*"],
  ];
  it.each([
    ["http://localhost:5173", true],
    ["http://localhost", true],
    ["http://[::1]:5173", true],
    ["vscode-webview://0kq3h8d2q1", true],
    ["https://dash.example.com", true],
    ["https://localhost:5173", false],
    ["http://localhost.evil.example", false],
    ["http://localhost:5173.evil.example", false],
    ["http://evil.example", false],
    ["http://evil.example?http://localhost:1", false],
    ["vscode-webview://", false],
    ["vscode-webviews://a", false],
    ["https://dashxexample.com", false],
    ["http://dash.example.com:8080", true],
    ["http://dashxexample.com:8080", false],
    ["null", false],
  ])("%s: %s", (origin, passes) => {
    const refusal = refusalOf({ host: "127.0.0.1:7052", origin }, { hosts: [], origins: patterns });
    expect(refusal === undefined).toBe(passes);
  });
});

describe("with TLS of our own", () => {
  it.each([
    ["https", { host: "deck.example.com", origin: "https://deck.example.com" }, undefined],
    ["https, the port written out", { host: "deck.example.com:443", origin: "https://deck.example.com" }, undefined],
    ["http", { host: "deck.example.com", origin: "http://deck.example.com" }, /Origin/],
    ["another port", { host: "deck.example.com", origin: "https://deck.example.com:8443" }, /Origin/],
  ])("our own page is one of %s or not", (_, headers, reason) => {
    const refusal = refusalOf(headers, allowed, { isTls: true });
    if (reason === undefined) expect(refusal).toBeUndefined();
    else expect(refusal?.message).toMatch(reason);
  });

  it("without it a proxy before us may be who speaks https", () => {
    expect(refusalOf({ host: "deck.example.com", origin: "https://deck.example.com" }, allowed)).toBeUndefined();
  });
});
