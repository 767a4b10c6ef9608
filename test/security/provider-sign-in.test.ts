import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { httpCall } from "../stack/http-call.ts";
import { rawClient } from "../stack/raw-call.ts";
import { bearing } from "../stack/token-stack.ts";
import { ProviderBrowser } from "./provider-browser.ts";
import { type ProviderStack, startProviderStack } from "./provider-stack.ts";

// Users of a real OpenID Connect provider (oidc-provider): on every transport with a JWT, and on the page with a
// session.

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let stack: ProviderStack;
let [origin, host, callback] = ["", "", ""];
beforeAll(async () => {
  stack = cleanup.use(await startProviderStack());
  origin = stack.origin;
  host = new URL(origin).host;
  callback = `${origin}/api/v1/sign-in/callback`;
});

const call = (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: string) =>
  stack.tokens.on.stack.httpCall(method, path, headers, body);
const read = "/api/v1/sources";

describe("a JWT of the provider", () => {
  it("lets a program in by HTTP, gRPC and WebSocket, with the roles of its claims and no more", async () => {
    const jwt = await stack.provider.accessToken();
    expect((await call("GET", read, bearing(jwt))).status).toBe(200);
    const about = JSON.parse((await call("GET", "/about", bearing(jwt))).body);
    expect(about.token).toMatchObject({ workspace: "acme", roles: ["viewer", "controller"] });
    expect((await call("GET", "/api/v1/tokens", bearing(jwt))).status).toBe(403);
    await using grpc = rawClient(stack.tokens.on.stack.grpc);
    expect(await grpc.code("/tapedeck.v1.Tapedeck/ListSources", bearing(jwt))).toBe(0);
    expect(await grpc.code("/tapedeck.v1.Recorder/Push", bearing(jwt))).toBe(7);
    expect(await opens(["tapedeck.v1.json", `tapedeck.bearer.${jwt}`])).toBe(101);
  });

  it("is refused on each of them if it is not for this Tapedeck, and counts next to tokens", async () => {
    const jwt = await stack.provider.sign({ aud: "another" });
    const { status, body, headers } = await call("GET", read, bearing(jwt));
    expect([status, headers["www-authenticate"]]).toEqual([401, "Bearer"]);
    expect(JSON.parse(body).error.message).toContain("not for this Tapedeck");
    await using grpc = rawClient(stack.tokens.on.stack.grpc);
    expect(await grpc.code("/tapedeck.v1.Tapedeck/ListSources", bearing(jwt))).toBe(16);
    expect(await opens(["tapedeck.v1.json", `tapedeck.bearer.${jwt}`])).toBe(401);
    const token = await stack.tokens.token("acme", ["viewer"]);
    expect((await call("GET", read, bearing(token.text))).status).toBe(200);
  });

  it("without a grant is forbidden with the reason, and sees nothing of another workspace", async () => {
    const nobody = await call("GET", read, bearing(await stack.provider.sign({ groups: ["sales"] })));
    expect([nobody.status, JSON.parse(nobody.body).error.message]).toEqual([
      403,
      expect.stringContaining('"groups" does not have "developers" or "admins" or "globex"'),
    ]);
    const about = await call("GET", "/about", bearing(await stack.provider.sign({ groups: ["globex"] })));
    expect(JSON.parse(about.body).token.workspace).toBe("globex");
  });

  it("of an admin manages tokens, but not what concerns all workspaces", async () => {
    const admin = bearing(await stack.provider.sign({ groups: ["admins"] }));
    expect((await call("GET", "/api/v1/tokens", admin)).status).toBe(200);
    expect((await call("POST", "/api/v1/rebuild", admin)).status).toBe(403);
  });
});

describe("signing in on the page", () => {
  const begin = `/api/v1/sign-in/provider?to=${encodeURIComponent("/sessions/01A?at=1")}`;
  const loggedIn = async (login: string, browser = new ProviderBrowser()) => {
    const answer = await browser.logIn(origin + begin, login, callback);
    return { browser, answer };
  };
  const ofPage = { "sec-fetch-site": "same-origin" };

  it("leads to the provider with PKCE, state and nonce, and back to where the person was", async () => {
    const browser = new ProviderBrowser();
    const redirect = await browser.ask(origin + begin);
    const to = new URL(redirect.headers.get("location") ?? "");
    expect([redirect.status, to.origin]).toEqual([303, stack.provider.issuer]);
    expect(Object.fromEntries(to.searchParams)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      redirect_uri: callback,
      state: expect.stringMatching(/.{20}/),
      nonce: expect.stringMatching(/.{20}/),
    });
    expect(redirect.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Lax/);
    const { answer } = await loggedIn("alice", browser);
    const back = await browser.ask(answer);
    expect([back.status, back.headers.get("location")]).toEqual([303, `${origin}/sessions/01A?at=1`]);
    const session = back.headers.getSetCookie().find((one) => one.startsWith("tapedeck-sign-in=")) ?? "";
    expect(session).toMatch(/; HttpOnly; SameSite=Strict$/);
    expect(session).toContain("Max-Age=28800");
    const cookie = browser.cookies(host);
    expect(cookie).not.toContain("begun");
    expect((await call("GET", read, { cookie, ...ofPage })).status).toBe(200);
    const about = JSON.parse((await call("GET", "/about", { cookie, ...ofPage })).body);
    expect(about.token).toMatchObject({ name: expect.stringMatching(/^alice \(127/), roles: ["viewer", "controller"] });
    expect(await opens(["tapedeck.v1.json"], { cookie, origin })).toBe(101);
  });

  it("gives a session that only reads, only for this page, and that is worth nothing as a token", async () => {
    const { browser, answer } = await loggedIn("root");
    await browser.ask(answer);
    const cookie = browser.cookies(host);
    const headers = { cookie, origin, ...ofPage };
    expect((await call("GET", "/api/v1/tokens", headers)).status).toBe(200);
    for (const [method, path] of [
      ["POST", "/api/v1/tokens"],
      ["POST", "/v1/execute"],
      ["POST", "/api/v1/rebuild"],
    ] as const) {
      expect([path, (await call(method, path, headers, "{}")).status]).toEqual([path, 401]);
    }
    for (const site of ["same-site", "cross-site", "none"]) {
      expect([401, 403]).toContain((await call("GET", read, { cookie, "sec-fetch-site": site })).status);
    }
    expect(await opens(["tapedeck.v1.json"], { cookie })).toBe(401);
    expect(await opens(["tapedeck.v1.json"], { cookie, origin: "http://127.0.0.1:1" })).toBe(403);
    const [, value = ""] = cookie.split("=");
    expect((await call("GET", read, bearing(value))).status).toBe(401);
    const out = await call("POST", "/api/v1/sign-out", { cookie, origin });
    expect(`${out.headers["set-cookie"]}`).toContain("tapedeck-sign-in=; Path=/; Max-Age=0;");
  });

  it.each([
    ["another browser", (answer: string) => answer, true],
    ["another state", (answer: string) => answer.replace(/state=[^&]+/, "state=forged"), false],
    ["no state", (answer: string) => answer.replace(/&?state=[^&]+/, ""), false],
    ["another code", (answer: string) => answer.replace(/code=[^&]+/, "code=forged"), false],
    ["another issuer", (answer: string) => answer.replace(/iss=[^&]+/, "iss=https%3A%2F%2Fevil.example"), false],
    ["an error in words", () => `${"CALLBACK"}?error=access_denied&error_description=%3Cscript%3Ecall+555`, false],
  ] as const)("is refused with the answer of %s", async (_, change, isOther) => {
    const { browser, answer } = await loggedIn("alice");
    if (isOther) browser.forget(host);
    const back = await browser.ask(change(answer).replace("CALLBACK", callback));
    const text = await back.text();
    expect([401, 403]).toContain(back.status);
    expect(back.headers.getSetCookie().join()).not.toContain("tapedeck-sign-in=ey");
    expect(text).not.toMatch(/<script|call 555/);
    expect(text).toContain("You are not signed in");
  });

  it("takes each answer once", async () => {
    const { browser, answer } = await loggedIn("alice");
    const cookie = browser.cookies(host);
    expect((await browser.ask(answer)).status).toBe(303);
    expect((await browser.ask(answer)).status).toBe(401);
    const replayed = await call("GET", answer.slice(origin.length), { cookie });
    expect([replayed.status, replayed.headers["set-cookie"]?.join()]).toEqual([
      401,
      expect.not.stringContaining("=ey"),
    ]);
    // The provider is not called again.
    expect(replayed.body).toContain("has already been completed");
  });

  it("may begin at one gateway, end at another, and go on at both", async () => {
    const { browser, answer } = await loggedIn("alice");
    const back = await httpCall(stack.other, "GET", answer.slice(origin.length), { cookie: browser.cookies(host) });
    expect([back.status, back.headers.location]).toEqual([303, `${origin}/sessions/01A?at=1`]);
    const cookie = back.headers["set-cookie"]?.find((one) => one.startsWith("tapedeck-sign-in="))?.split(";")[0] ?? "";
    expect((await call("GET", read, { cookie, ...ofPage })).status).toBe(200);
    expect((await httpCall(stack.other, "GET", read, { cookie, ...ofPage })).status).toBe(200);
  });

  it("says to a person without a role what is missing, and to one of two workspaces that these are two", async () => {
    for (const [login, words] of [
      ["stranger", "there is no claim &quot;groups&quot;"],
      ["both", "roles in several workspaces (acme and globex)"],
    ] as const) {
      const { browser, answer } = await loggedIn(login);
      const back = await browser.ask(answer);
      expect([login, back.status]).toEqual([login, 403]);
      expect(await back.text()).toContain(words);
      expect(browser.cookies(host)).not.toContain("tapedeck-sign-in");
    }
  });

  it("leads nowhere but to its own page, and another site begins nothing", async () => {
    for (const to of ["https://evil.example/", "//evil.example", "/\\evil.example", "/api/v1/sign-in/provider"]) {
      const browser = new ProviderBrowser();
      const answer = await browser.logIn(
        `${origin}/api/v1/sign-in/provider?to=${encodeURIComponent(to)}`,
        "alice",
        callback,
      );
      expect([to, (await browser.ask(answer)).headers.get("location")]).toEqual([to, `${origin}/`]);
    }
    for (const site of ["cross-site", "same-site"]) {
      const { status, headers } = await call("GET", begin, { "sec-fetch-site": site, "sec-fetch-mode": "navigate" });
      expect([status, headers.location, headers["set-cookie"]]).toEqual([303, origin, undefined]);
    }
  });

  it("is offered by /about", async () => {
    const { signIn } = JSON.parse((await call("GET", "/about")).body);
    expect(signIn).toEqual({ title: "Acme", url: `${origin}/api/v1/sign-in/provider` });
  });
});

/** The status of the answer to an upgrade. */
async function opens(protocols: string[], headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const socket = new WebSocket(`ws://${host}/api/v1/ws`, protocols, { headers });
  socket.on("error", () => {});
  const status = await Promise.race([
    once(socket, "open").then(() => 101),
    once(socket, "unexpected-response").then(([, response]) => (response as { statusCode: number }).statusCode),
  ]);
  socket.terminate();
  return status;
}
