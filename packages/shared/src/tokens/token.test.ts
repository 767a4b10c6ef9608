import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { isExpired, makeToken, renewedToken, type TokenRequest, tokenHash, tokenRecord } from "./token.ts";

const request: TokenRequest = { name: "Zoë's CI", workspace: "acme", roles: ["viewer"], lifetimeMs: 60_000 };

it("a token is 32 random bytes that are not stored, only their hash is", () => {
  const [one, other] = [makeToken(request), makeToken(request)];
  expect(one.text).toMatch(/^tdk_[A-Za-z0-9_-]{43}$/);
  expect(Buffer.from(one.text.slice(4), "base64url")).toHaveLength(32);
  expect(one.text).not.toBe(other.text);
  expect(one.record.id).not.toBe(other.record.id);
  expect(one.hash).toBe(createHash("sha256").update(one.text).digest("hex"));
  expect(tokenHash(one.text)).toBe(one.hash);
  expect(JSON.stringify(one.record)).not.toContain(one.text.slice(4));
});

it("a token is valid until it expires", () => {
  const { record } = makeToken(request, Date.parse("2026-01-31T12:00:00Z"));
  expect(record).toMatchObject({ createdAt: "2026-01-31T12:00:00.000Z", expiresAt: "2026-01-31T12:01:00.000Z" });
  expect(isExpired(record, Date.parse("2026-01-31T12:00:59.999Z"))).toBe(false);
  expect(isExpired(record, Date.parse("2026-01-31T12:01:00Z"))).toBe(true);
});

it("roles are in a fixed order without repeats", () => {
  const { record } = makeToken({ ...request, roles: ["admin", "recorder", "admin"], developer: "alice" });
  expect(record.roles).toEqual(["recorder", "admin"]);
});

it.each([
  ["a recorder's without a developer", { roles: ["recorder"] }, /needs a developer/],
  ["of no workspace", { workspace: "" }, /workspace: expected 1–64/],
  ["of all workspaces", { workspace: "*" }, /workspace: expected 1–64/],
  ["of a workspace with parts", { workspace: "acme.alice" }, /workspace: expected 1–64/],
  ["of a developer with wildcards", { roles: ["recorder"], developer: ">" }, /developer: expected 1–64/],
  ["without a role", { roles: [] }, /roles/],
  ["without a name", { name: "" }, /name/],
  ["with a name that breaks lines", { name: "a\nb" }, /control characters/],
  ["called like a person", { name: "alice@example.com (sso.example)" }, /ends with a parenthesis/],
  ["called like a machine", { name: "nightly (machine)" }, /ends with a parenthesis/],
  ["called like a machine in full width", { name: "nightly （machine）" }, /ends with a parenthesis/],
  ["called like a person, and a joiner", { name: "alice (sso.example)\u200D " }, /ends with a parenthesis/],
  ["called like a person of the provider", { name: "oidc:alice" }, /begins with "oidc"/],
  ["called like another kind", { name: "Machine : nightly" }, /begins with "machine"/],
  ["called like many", { name: "several" }, /begins with "several"/],
  ["called like nobody", { name: "Anonymous" }, /begins with "anonymous"/],
  ["called like a user of the server", { name: "root  on this\u00A0machine" }, /ends with "on this machine"/],
  ["called like an address", { name: "192.0.2.7" }, /is an address/],
  ["called like an address with a port", { name: "127.0.0.1:7052" }, /is an address/],
  ["called like an address of IPv6", { name: "[::1]:7052" }, /is an address/],
  ["called like an address of gRPC", { name: "ipv4:127.0.0.1:7052" }, /is an address/],
  ["whose name hides a character", { name: "al\u202Eice" }, /has the character U\+202E/],
  ["without an end", { lifetimeMs: Number.POSITIVE_INFINITY }, /has to expire/],
  ["that is over already", { lifetimeMs: 0 }, /has to expire/],
] as [string, Partial<TokenRequest>, RegExp][])("a token %s cannot be made", (_, more, reason) => {
  expect(() => makeToken({ ...request, ...more })).toThrow(reason);
});

it.each([
  "Alice's laptop",
  "ci: nightly",
  "Machine room",
  "alice@example.com",
  "token",
  "Zoë (work) laptop",
  "李 1.2.3",
])("a token can be called %s", (name) => expect(makeToken({ ...request, name }).record.name).toBe(name));

it("a token that is called like somebody else can be renewed", () => {
  const record = { ...makeToken(request).record, name: "alice (sso.example)" };
  expect(tokenRecord.parse(renewedToken(record).record).name).toBe("alice (sso.example)");
});

it.each([
  [""],
  ["tdk_"],
  ["tdk_short"],
  [`tdk_${"a".repeat(44)}`],
  [`tdk_${"*".repeat(43)}`],
  [`xyz_${"a".repeat(43)}`],
])("%s is not a token", (text) => {
  expect(tokenHash(text)).toBeUndefined();
});
