import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fastify from "fastify";
import { expect, it } from "vitest";
import { docsRoutes } from "./docs-routes.ts";

function built(): string {
  const folder = mkdtempSync(join(tmpdir(), "docs-"));
  for (const name of ["assets", "decisions"]) mkdirSync(join(folder, name));
  writeFileSync(join(folder, "index.html"), '<script type="module" src="/docs/a.js"></script><script>x()</script>');
  writeFileSync(join(folder, "team.html"), "team");
  writeFileSync(join(folder, "decisions", "index.html"), "decisions");
  writeFileSync(join(folder, "assets", "app.abc.js"), "export {}");
  writeFileSync(join(folder, "assets", "flow.abc.svg"), "<svg/>");
  writeFileSync(join(folder, "notes.secret"), "no page");
  return folder;
}

function serving(folder: string) {
  const app = fastify({ exposeHeadRoutes: false });
  docsRoutes(app, folder);
  return (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
}

it.each([
  ["/docs/team.html", "team", "text/html; charset=utf-8", "no-cache"],
  ["/docs/decisions/", "decisions", "text/html; charset=utf-8", "no-cache"],
  ["/docs/assets/app.abc.js", "export {}", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"],
  ["/docs/assets/flow.abc.svg", "<svg/>", "image/svg+xml", "public, max-age=31536000, immutable"],
])("%s is a file of the manual", async (url, text, type, caching) => {
  const { statusCode, headers, body } = await serving(built())(url);
  expect([statusCode, body, headers["content-type"]]).toEqual([200, text, type]);
  expect(headers).toMatchObject({
    "cache-control": caching,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
  });
});

it("leads /docs to the first page, which runs its own scripts alone", async () => {
  const get = serving(built());
  const { statusCode, headers } = await get("/docs");
  expect([statusCode, headers.location]).toEqual([308, "/docs/"]);
  const policy = `${(await get("/docs/")).headers["content-security-policy"]}`;
  const hash = createHash("sha256").update("x()").digest("base64");
  expect(policy).toContain(`default-src 'none'; script-src 'self' 'sha256-${hash}';`);
});

it("reads the manual once, at its start", async () => {
  const folder = built();
  const get = serving(folder);
  rmSync(folder, { recursive: true });
  expect((await get("/docs/team.html")).body).toBe("team");
});

it("lets browsers keep a page until it changes", async () => {
  const get = serving(built());
  const { etag } = (await get("/docs/team.html")).headers;
  const again = await get("/docs/team.html", { "if-none-match": `${etag}` });
  expect([again.statusCode, again.body]).toEqual([304, ""]);
});

it("serves nothing but the files of the manual", async () => {
  const get = serving(built());
  for (const url of ["/docs/none.html", "/docs/notes.secret", "/docs/..%2f..%2fetc/passwd", "/docs/assets/"]) {
    expect([url, (await get(url)).statusCode]).toEqual([url, 404]);
  }
});

it("returns the path of the manual, which /about names, only if it was built", () => {
  const path = (folder: string) => docsRoutes(fastify({ exposeHeadRoutes: false }), folder);
  expect([path(built()), path(mkdtempSync(join(tmpdir(), "docs-")))]).toEqual(["/docs/", undefined]);
});

it.each(["/docs", "/docs/", "/docs/team.html"])("without the built manual, %s says how to build it", async (url) => {
  const { statusCode, headers, body } = await serving(mkdtempSync(join(tmpdir(), "docs-")))(url);
  expect([statusCode, headers["content-type"]]).toEqual([404, "text/plain; charset=utf-8"]);
  expect(body).toContain("npm run docs:build");
});
