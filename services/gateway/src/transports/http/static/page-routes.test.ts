import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fastify from "fastify";
import { expect, it } from "vitest";
import { answerRefusals } from "../refusals.ts";
import { pageRoutes } from "./page-routes.ts";

function built(): string {
  const folder = mkdtempSync(join(tmpdir(), "page-"));
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><div id=page></div>");
  writeFileSync(join(folder, "assets", "index-abc.js"), "export {}");
  writeFileSync(join(folder, "session-file.html"), "<!doctype html>for files");
  return folder;
}

async function serving(folder: string) {
  const app = fastify({ exposeHeadRoutes: false });
  answerRefusals(
    app.decorate("rateLimit", () => async () => {}),
    { watch: () => expect.fail(), bodyBytes: 1 },
  );
  pageRoutes(app, folder);
  const get = (url: string, headers: Record<string, string> = { accept: "text/html" }) => app.inject({ url, headers });
  return { app, get };
}

const views = [
  ...["/", "/sessions/01ABC?at=1-x", "/loops/01ABC.1.2", "/compare?left=a", "/trends", "/health"],
  ...["/loops/", "/trends/", "/compare/?left=a", "/health/"],
];

it.each(views)("%s is the page, with a strict content security policy", async (url) => {
  const { get } = await serving(built());
  const { statusCode, headers, body } = await get(url);
  expect([statusCode, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
  expect(body).toContain("id=page");
  const policy = `${headers["content-security-policy"]}`;
  expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
  expect(policy).not.toContain("unsafe");
  expect(headers["cache-control"]).toBe("no-cache");
});

it("answers clients that want no HTML as Skaffold does", async () => {
  const { get } = await serving(built());
  const { statusCode, body } = await get("/health", { accept: "*/*" });
  expect([statusCode, JSON.parse(body).code]).toEqual([404, 5]);
});

it("answers every client at /, with the page", async () => {
  const { app, get } = await serving(built());
  for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }]) {
    const { statusCode, body } = await get("/", headers);
    expect([statusCode, body]).toEqual([200, expect.stringContaining("id=page")]);
  }
  const { statusCode, body, headers } = await app.inject({ method: "HEAD", url: "/" });
  expect([statusCode, body, headers["content-type"]]).toEqual([200, "", "text/html; charset=utf-8"]);
});

it.each(["/loop", "/session", "/now", "/a/b/c", "/v1/nothing"])(
  "browsers get the page at %s, others a 404",
  async (url) => {
    const { get } = await serving(built());
    const shown = await get(url);
    expect([shown.statusCode, shown.body]).toEqual([404, expect.stringContaining("id=page")]);
    expect(shown.headers["content-type"]).toBe("text/html; charset=utf-8");
    const refused = await get(url, { accept: "*/*" });
    expect([refused.statusCode, refused.json()]).toEqual([404, { code: 5, message: "Not Found", details: [] }]);
  },
);

it("leaves unknown paths of the API to the API, for browsers too", async () => {
  const { get } = await serving(built());
  const { statusCode, body } = await get("/api/v1/nothing");
  expect([statusCode, JSON.parse(body).error.code]).toEqual([404, "not_found"]);
});

it("lets browsers keep assets for good, and the page until it changes", async () => {
  const { get } = await serving(built());
  const { headers, body } = await get("/assets/index-abc.js");
  expect([headers["cache-control"], body]).toEqual(["public, max-age=31536000, immutable", "export {}"]);
  const { etag } = (await get("/")).headers;
  const again = await get("/", { accept: "text/html", "if-none-match": `${etag}` });
  expect([again.statusCode, again.body]).toEqual([304, ""]);
});

it("serves the page of files to whoever writes one, without letting it run here", async () => {
  const { get } = await serving(built());
  const { statusCode, headers, body } = await get("/session-file.html", { accept: "*/*" });
  expect([statusCode, body]).toEqual([200, "<!doctype html>for files"]);
  expect(headers).toMatchObject({
    "content-security-policy": "default-src 'none'; sandbox",
    "cache-control": "no-cache",
  });
  const { get: getUnbuilt } = await serving(mkdtempSync(join(tmpdir(), "page-")));
  expect((await getUnbuilt("/session-file.html")).statusCode).toBe(404);
});

it("serves nothing from outside the built page", async () => {
  const { get } = await serving(built());
  for (const url of ["/assets/..%2findex.html", "/assets/nothing.js", "/assets/"]) {
    expect([url, (await get(url)).statusCode]).toEqual([url, 404]);
  }
});

it("says what to do where the page was not built", async () => {
  const { get } = await serving(mkdtempSync(join(tmpdir(), "page-")));
  const { statusCode, body } = await get("/");
  expect([statusCode, body]).toEqual([200, expect.stringContaining("npm run build -w packages/web")]);
});
