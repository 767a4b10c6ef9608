import { until } from "@tapedeck/shared/testing/until";
import { exportSPKI, importJWK, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Credentials } from "../authenticator.ts";
import { unauthenticated } from "../bearer.ts";
import { Deadlines } from "./deadlines.ts";
import { IdentityProvider } from "./identity-provider.ts";
import { pageSessions } from "./page-session.ts";
import { providerAuthenticator } from "./provider-authenticator.ts";
import type { ProviderSettings } from "./settings.ts";
import { audience, type ProviderServer, startProviderServer } from "./testing/provider-server.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let server: ProviderServer;
beforeAll(async () => {
  server = cleanup.use(await startProviderServer());
});

const settingsFor = (issuer: string): ProviderSettings => ({
  issuer,
  audience,
  clockSkewMs: 30_000,
  nameClaim: "preferred_username",
  developerClaim: undefined,
  grants: [{ claim: "groups", value: "developers", roles: ["viewer"], workspace: "acme" }],
  page: undefined,
});

/** Authenticates as the gateway does; `retryMs` 0: the provider may be asked whenever there is a reason. */
function opened(of: ProviderServer, { retryMs = 0, refreshMs = 3_600_000 } = {}) {
  const said: string[] = [];
  const settings = settingsFor(of.issuer);
  const provider = cleanup.use(new IdentityProvider(settings, { warn: (one) => said.push(one), retryMs, refreshMs }));
  const authenticate = providerAuthenticator({
    settings,
    provider,
    sessions: pageSessions("key", settings.issuer),
    deadlines: cleanup.use(new Deadlines()),
    audit: { accepted: () => {}, refused: () => {} },
    tokens: async () => Promise.reject(unauthenticated("asked as a token")),
  });
  const bearer = (jwt: string, more: Partial<Credentials> = {}) =>
    authenticate({ authorization: `Bearer ${jwt}`, peer: "127.0.0.1", ...more });
  return { authenticate, bearer, said };
}

describe("a JWT", () => {
  it("that the provider itself has given to a program lets it in, with the roles of its claims", async () => {
    const { bearer } = opened(server);
    const caller = await bearer(await server.accessToken());
    expect(caller).toMatchObject({
      workspace: "acme",
      roles: new Set(["viewer"]),
      who: expect.stringMatching(/^nightly \(127\.0\.0\.1:\d+\)$/),
    });
    expect(caller.revoked?.aborted).toBe(false);
  });

  it("may come as a subprotocol of a WebSocket", async () => {
    const { authenticate } = opened(server);
    const protocols = ["tapedeck.v1.json", `tapedeck.bearer.${await server.sign()}`];
    expect(await authenticate({ authorization: undefined, protocols, peer: "-" })).toMatchObject({ workspace: "acme" });
  });

  const now = () => Math.floor(Date.now() / 1_000);
  const bad: [string, () => JWTPayload, RegExp][] = [
    ["of another audience", () => ({ aud: "tapedeck-page" }), /not for this Tapedeck: its "aud" lacks/],
    ["of several others", () => ({ aud: ["a", "b"] }), /its "aud" lacks/],
    ["of no audience", () => ({ aud: undefined as never }), /"aud"/],
    ["of another issuer", () => ({ iss: "https://evil.example" }), /not from the identity provider/],
    ["of no issuer", () => ({ iss: undefined as never }), /not from the identity provider|"iss"/],
    ["that has expired", () => ({ exp: now() - 60 }), /has expired/],
    ["that never expires", () => ({ exp: undefined as never }), /"exp" is missing/],
    ["that is not valid yet", () => ({ nbf: now() + 60 }), /not valid yet/],
    ["of nobody", () => ({ sub: undefined as never }), /"sub" is missing/],
    ["of an empty name", () => ({ sub: "" }), /empty "sub"/],
  ];
  it.each(bad)("%s is refused", async (_, claims, words) => {
    const { bearer } = opened(server);
    const refusal = await bearer(await server.sign(claims())).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "unauthenticated", message: expect.stringMatching(words) });
  });

  it("may be late or early by the clock skew", async () => {
    const { bearer } = opened(server);
    expect(await bearer(await server.sign({ exp: now() - 5 }))).toMatchObject({ workspace: "acme" });
    expect(await bearer(await server.sign({ nbf: now() + 20 }))).toMatchObject({ workspace: "acme" });
    expect(await bearer(await server.sign({ aud: ["other", audience] }))).toMatchObject({ workspace: "acme" });
  });

  it("without a grant is forbidden, and learns which claim is missing", async () => {
    const { bearer } = opened(server);
    const refusal = await bearer(await server.sign({ groups: ["sales"], roles: ["admin"] })).catch((error) => error);
    expect(refusal).toMatchObject({ code: "forbidden", message: expect.stringContaining('"groups" does not have') });
  });

  it("counts only with a signature of the provider", async () => {
    const { bearer } = opened(server);
    const good = await server.sign();
    const [head = "", body = "", signature = ""] = good.split(".");
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const { n = "", e = "", kid = "" } = server.key();
    const publicKey = await importJWK({ kty: "RSA", n, e }, "RS256", { extractable: true });
    if (publicKey instanceof Uint8Array) throw new Error("not an RSA key");
    const pem = Buffer.from(await exportSPKI(publicKey));
    const byPublicKey = (header: object) =>
      new SignJWT(JSON.parse(atob(body))).setProtectedHeader({ alg: "HS256", ...header }).sign(pem);
    const other = await startProviderServer().then((one) => cleanup.use(one));
    const inHeader = { jwk: { kty: "RSA", n: other.key().n, e: other.key().e }, jku: `${other.issuer}/jwks` };
    const forged: [string, string][] = [
      ["alg none", `${encoded({ alg: "none" })}.${body}.`],
      ["alg None, with the key's name", `${encoded({ alg: "None", kid })}.${body}.${signature}`],
      ["HS256 with the public key", await byPublicKey({ kid })],
      ["HS256 without a key's name", await byPublicKey({})],
      ["other claims", `${head}.${encoded({ ...JSON.parse(atob(body)), groups: ["admins"] })}.${signature}`],
      ["another provider's key", await other.sign({ iss: server.issuer })],
      ["another provider's key of the same name", await other.sign({ iss: server.issuer }, { kid })],
      ["a key in its own header", await other.sign({ iss: server.issuer }, { kid, ...inHeader })],
      ["no signature", `${head}.${body}.`],
      ["a logout token", await server.sign({}, { typ: "logout+jwt" })],
      [
        "an unknown critical extension",
        `${encoded({ ...JSON.parse(atob(head)), crit: ["x"], x: 1 })}.${body}.${signature}`,
      ],
    ];
    for (const [name, jwt] of forged) {
      const refusal = await bearer(jwt).catch((error: unknown) => error);
      expect([name, refusal]).toEqual([name, expect.objectContaining({ code: "unauthenticated" })]);
    }
    expect(await bearer(good)).toMatchObject({ workspace: "acme" });
  });

  it("ends what is under way with it when it expires", async () => {
    const { bearer } = opened(server);
    const { revoked } = await bearer(await server.sign({ exp: now() - 28 }));
    await until(() => revoked?.aborted, { message: "the JWT to be over" });
    expect(revoked?.reason).toMatchObject({ code: "unauthenticated" });
  });

  it("is no token, and a token no JWT", async () => {
    const { bearer } = opened(server);
    for (const text of [`tdk_${"A".repeat(43)}`, "something", "a.b.c", "tdk_ey.J.x"]) {
      await expect(bearer(text)).rejects.toThrow("asked as a token");
    }
  });
});

describe("the provider", () => {
  it("may change its keys while the gateway runs; the old key no longer counts", async () => {
    const own = cleanup.use(await startProviderServer());
    const { bearer } = opened(own);
    const before = await own.sign();
    expect(await bearer(before)).toMatchObject({ workspace: "acme" });
    await own.rotate();
    expect(await bearer(await own.sign())).toMatchObject({ workspace: "acme" });
    await expect(bearer(before)).rejects.toThrow("a key that the identity provider does not publish");
  });

  it("is not asked again for each unknown key", async () => {
    const own = cleanup.use(await startProviderServer());
    const { bearer } = opened(own, { retryMs: 3_600_000 });
    await bearer(await own.sign());
    const forged = Array.from({ length: 200 }, async (_, index) => {
      const refusal = await bearer(await own.sign({}, { kid: `unknown-${index}` })).catch((error) => error);
      expect(refusal.code).toBe("unauthenticated");
    });
    await Promise.all(forged);
    expect([own.requests("/jwks"), own.requests("/.well-known/openid-configuration")]).toEqual([1, 1]);
  });

  it("may be away at the start: its people get an error that says so, tokens are not concerned, and it is found when it is back", async () => {
    const own = cleanup.use(await startProviderServer());
    const jwt = await own.sign();
    own.setAway(true);
    const { bearer, said } = opened(own);
    const refusal = await bearer(jwt).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: "not_ready",
      message: expect.stringMatching(/identity provider at .* is not available now.*token of Tapedeck/),
    });
    await expect(bearer(`tdk_${"A".repeat(43)}`)).rejects.toThrow("asked as a token");
    own.setAway(false);
    expect(await bearer(jwt)).toMatchObject({ workspace: "acme" });
    expect(said).toEqual([
      expect.stringContaining("is not available: its users can't sign in"),
      expect.stringContaining("is available again"),
    ]);
  });

  it("may go away later: the known keys stay in use, and it is said once", async () => {
    const own = cleanup.use(await startProviderServer());
    const { bearer, said } = opened(own);
    await bearer(await own.sign());
    own.setAway(true);
    const unknown = await own.sign({}, { kid: "unknown" });
    for (const _ of [1, 2, 3]) await expect(bearer(unknown)).rejects.toThrow("does not publish");
    expect(await bearer(await own.sign())).toMatchObject({ workspace: "acme" });
    expect(said).toEqual([expect.stringContaining("the known keys stay in use")]);
  });
});

it("a session of the page is a person, until it expires; nobody else can make one", async () => {
  const { authenticate, bearer } = opened(server);
  const person = { subject: "u-1", name: "alice", has: [["groups", "developers"] as const] };
  const session = await pageSessions("key", server.issuer).seal(person, 60_000);
  const shown = { authorization: undefined, peer: "-", session };
  expect(await authenticate(shown)).toMatchObject({
    who: expect.stringMatching(/^alice \(/),
    kind: "person",
    roles: new Set(["viewer"]),
  });
  const ofOther = await pageSessions("other", server.issuer).seal(person, 60_000);
  await expect(authenticate({ ...shown, session: ofOther })).rejects.toThrow("sign in again");
  await expect(bearer(session)).rejects.toThrow();
});
