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
    expect(refusalOf(headers, allowed)).toMatch(reason);
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
    else expect(refusal).toMatch(reason);
  });

  it("without it a proxy before us may be who speaks https", () => {
    expect(refusalOf({ host: "deck.example.com", origin: "https://deck.example.com" }, allowed)).toBeUndefined();
  });
});
