import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { startTokenStack, type TestToken, type TokenStack } from "../stack/token-stack.ts";

// Signing in on the page: the cookie grants read access to this gateway's own page, and nothing else to anyone.

const cleanup = new AsyncDisposableStack();
let tokens: TokenStack;
let viewer: TestToken;
let admin: TestToken;
let [host, own, cookie] = ["", "", ""];

beforeAll(async () => {
  tokens = cleanup.use(await startTokenStack());
  [viewer, admin] = [await tokens.token("default", ["viewer"]), await tokens.token("default", ["admin"])];
  host = tokens.on.stack.http;
  own = `http://${host}`;
  cookie = await signedIn(admin.text);
});
afterAll(() => cleanup.disposeAsync());

type Headers = Readonly<Record<string, string>>;
const call = (method: string, path: string, headers: Headers = {}, body?: string) =>
  tokens.on.stack.httpCall(method, path, headers, body);
const signIn = (token: string, headers: Headers = { origin: own }) =>
  call("POST", "/api/v1/sign-in", headers, JSON.stringify({ token }));

async function signedIn(token: string): Promise<string> {
  const { headers } = await signIn(token);
  return `${headers["set-cookie"]}`.split(";")[0] ?? "";
}

/** A browser's headers on the page's own requests. */
const ofPage = { "sec-fetch-site": "same-origin" };
const read = "/api/v1/sources";

describe("signing in", () => {
  it("sets a cookie that scripts can't read, other sites can't send, and that does not hold the token", async () => {
    const { status, headers } = await signIn(viewer.text);
    const set = `${headers["set-cookie"]}`;
    expect(status).toBe(204);
    for (const part of ["HttpOnly", "SameSite=Strict", "Path=/"]) expect(set).toContain(part);
    expect(set).not.toContain("Secure");
    expect(Buffer.from(set.split(/[=;]/)[1] ?? "", "base64url").toString("latin1")).not.toContain(viewer.text.slice(4));
    expect(headers["cache-control"]).toBe("no-store");
  });

  it("sets a cookie for TLS alone where the page came by TLS", async () => {
    const { headers } = await signIn(viewer.text, { origin: `https://${host}` });
    expect(`${headers["set-cookie"]}`).toContain("Secure");
  });

  it("is refused with a token that is unknown, or that may not read", async () => {
    const recorder = await tokens.token("default", ["recorder"]);
    for (const [token, expected] of [
      ["tdk_nobody", 401],
      [recorder.text, 403],
      ["", 400],
    ] as const) {
      const { status, headers } = await signIn(token);
      expect([token, status, headers["set-cookie"]]).toEqual([token, expected, undefined]);
    }
  });

  it.each([
    { origin: "https://evil.example" },
    { origin: "http://127.0.0.1:1" },
    { origin: "null" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "cross-site" },
  ])("is refused for a page that sends %j", async (headers) => {
    const { status, headers: answer } = await signIn(viewer.text, headers as Headers);
    expect([status, answer["set-cookie"]]).toEqual([403, undefined]);
  });
});

describe("the cookie", () => {
  it("reads for the page, as the token's holder", async () => {
    expect((await call("GET", read, { cookie, ...ofPage })).status).toBe(200);
    const { body } = await call("GET", "/about", { cookie, ...ofPage });
    expect(JSON.parse(body).token.roles).toEqual(["admin"]);
  });

  it("reads where browsers send no sec-fetch-site, if the request names the page it is from", async () => {
    expect((await call("GET", read, { cookie, referer: `${own}/health` })).status).toBe(200);
    expect((await call("GET", read, { cookie, referer: "http://evil.example/" })).status).toBe(401);
    expect((await call("GET", read, { cookie })).status).toBe(401);
  });

  it.each(["same-site", "cross-site", "none"])(
    "counts for nothing in a request from sec-fetch-site %s",
    async (site) => {
      const { status } = await call("GET", read, { cookie, "sec-fetch-site": site });
      expect([401, 403]).toContain(status);
      const { status: navigated } = await call("GET", read, {
        cookie,
        "sec-fetch-site": site,
        "sec-fetch-mode": "navigate",
      });
      expect(navigated).toBe(401);
    },
  );

  it("changes nothing, even for the page and an admin", async () => {
    const headers = { cookie, origin: own, ...ofPage };
    const writes = [
      ["POST", "/api/v1/tokens"],
      ["DELETE", "/api/v1/sessions/01ABC"],
      ["POST", "/api/v1/rebuild"],
      ["POST", "/v1/execute"],
      ["PUT", "/v2/build/auto_execute"],
    ] as const;
    for (const [method, path] of writes) {
      const body = method === "DELETE" ? undefined : "{}";
      expect([path, (await call(method, path, headers, body)).status]).toEqual([path, 401]);
    }
  });

  it("opens a WebSocket for this gateway's page alone", async () => {
    expect(await opens({ cookie, origin: own })).toBe(101);
    expect(await opens({ cookie })).toBe(401);
    expect(await opens({ cookie, ...ofPage })).toBe(401);
    expect(await opens({ cookie, origin: "http://127.0.0.1:1" })).toBe(403);
  });

  it("is worth nothing as a token", async () => {
    const authorization = `Bearer ${cookie.split("=")[1]}`;
    expect((await call("GET", read, { authorization })).status).toBe(401);
  });

  it("ends with its token", async () => {
    const other = await tokens.token("default", ["viewer"]);
    const given = await signedIn(other.text);
    expect((await call("GET", read, { cookie: given, ...ofPage })).status).toBe(200);
    await other.revoke();
    await expect.poll(async () => (await call("GET", read, { cookie: given, ...ofPage })).status).toBe(401);
  });

  it("is taken away by signing out, which another page can't do", async () => {
    const { status, headers } = await call("POST", "/api/v1/sign-out", { cookie, origin: own });
    expect(status).toBe(204);
    expect(`${headers["set-cookie"]}`).toContain("tapedeck-sign-in=; Path=/; Max-Age=0;");
    expect((await call("POST", "/api/v1/sign-out", { cookie, "sec-fetch-site": "same-site" })).status).toBe(403);
  });
});

/** The status of the answer to an upgrade. */
async function opens(headers: Headers): Promise<number> {
  const socket = new WebSocket(`ws://${host}/api/v1/ws`, ["tapedeck.v1.json"], { headers });
  socket.on("error", () => {});
  const status = await Promise.race([
    once(socket, "open").then(() => 101),
    once(socket, "unexpected-response").then(([, response]) => (response as { statusCode: number }).statusCode),
  ]);
  socket.terminate();
  return status;
}
