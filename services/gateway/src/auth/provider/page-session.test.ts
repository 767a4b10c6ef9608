import { expect, it } from "vitest";
import { pageSessions, startedSignIns } from "./page-session.ts";

const issuer = "https://sso.example";
const person = { subject: "u-1", name: "alice", has: [["groups", "developers"] as const] };
const hour = 3_600_000;

it("opens what a gateway with the same key has sealed, until it expires", async () => {
  const session = await pageSessions("key", issuer).seal(person, hour);
  const opened = await pageSessions("key", issuer).open(session);
  expect(opened).toEqual({ ...person, expiresAtMs: expect.any(Number) });
  expect(opened?.expiresAtMs).toBeGreaterThan(Date.now());
  expect(
    await pageSessions("key", issuer).open(await pageSessions("key", issuer).seal(person, -2_000)),
  ).toBeUndefined();
});

it("hides what it holds", async () => {
  const session = await pageSessions("key", issuer).seal(person, hour);
  const parts = session.split(".").map((part) => Buffer.from(part, "base64url").toString("latin1"));
  expect(parts.join()).not.toMatch(/alice|u-1|developers/);
});

it("opens nothing of another key, provider or purpose, and nothing that was changed", async () => {
  const sessions = pageSessions("key", issuer);
  const session = await sessions.seal(person, hour);
  expect(await pageSessions("other", issuer).open(session)).toBeUndefined();
  expect(await pageSessions("key", "https://other.example").open(session)).toBeUndefined();
  expect(await startedSignIns("key", issuer).open(session)).toBeUndefined();
  const begun = await startedSignIns("key", issuer).seal({ state: "s", nonce: "n", verifier: "v", to: "/" }, hour);
  expect(await sessions.open(begun)).toBeUndefined();
  for (const index of [1, 2, 3, 4]) {
    const parts = session.split(".");
    parts[index] = `${parts[index]?.startsWith("A") ? "B" : "A"}${parts[index]?.slice(1)}`;
    expect([index, await sessions.open(parts.join("."))]).toEqual([index, undefined]);
  }
  for (const text of ["", "a.b.c.d.e", "tdk_x"]) expect(await sessions.open(text)).toBeUndefined();
});
