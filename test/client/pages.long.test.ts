import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect as connectNats } from "nats";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browser, openInBrowser } from "./browser.ts";
import { type LiveHarness, startLiveHarness } from "./live-harness.ts";

// Pages of several origins in a real browser: refused, allowed by a pattern, and behind Vite's proxy as in the client's
// README. Needs a Chromium (Debian: apt-get install chromium).

const packageFolder = fileURLToPath(new URL("../../packages/client", import.meta.url));

/** The result of each attempt, by its name. */
type Report = Readonly<Record<string, unknown>>;

/** `url`: the gateway, or a proxy of it. Every page reports once. */
const page = `<!doctype html>
<script type="module">
  import { connect } from "/client/index.js";
  const asked = new URLSearchParams(location.hash.slice(1));
  const url = asked.get("url") ?? location.origin;
  const token = asked.get("token") ?? undefined;
  const report = {};
  const tried = async (what, run) => {
    report[what] = await run().catch(({ name, code }) => [name, code ?? ""].join(" "));
  };
  const tapedeck = connect({ url, token });
  await tried("state", async () => (await tapedeck.state("alice/shop")).source);
  await tried("events", async () => {
    for await (const { kind } of tapedeck.events({ after: "start" })) return kind;
  });
  await tried("fetch", async () => {
    const response = await fetch(url + "/api/v1/sources");
    return [response.status, (await response.json()).error?.code];
  });
  await tried("post", async () => (await fetch(url + "/v1/execute", { method: "POST", body: "{}" })).status);
  if (asked.has("streams")) {
    const open = () => {
      const source = new EventSource(url + "/api/v1/stream?after=start");
      const refusal = Promise.withResolvers();
      source.addEventListener("error", ({ data }) => data && refusal.resolve(JSON.parse(data).error.code));
      const isOn = new Promise((resolve) => source.addEventListener("caught_up", resolve, { once: true }));
      return { source, refusal: refusal.promise, isOn };
    };
    const first = [open(), open()];
    await Promise.all(first.map(({ isOn }) => isOn));
    const third = open();
    report.third = await third.refusal;
    report.isClosed = third.source.readyState === EventSource.CLOSED;
    first[0].source.close();
    await third.isOn;
    report.isOnLater = true;
    const wrong = new EventSource(url + "/api/v1/stream?after=soon");
    await new Promise((resolve) => wrong.addEventListener("error", resolve));
    report.isWrongClosed = wrong.readyState === EventSource.CLOSED;
  }
  await fetch("/report", { method: "POST", body: JSON.stringify({ page: asked.get("page"), report }) });
</script>`;

describe.skipIf(browser === undefined)("a page in a browser", () => {
  const cleanup = new AsyncDisposableStack();
  const reports = new Map<string, Report>();
  let guarded: LiveHarness;
  let limited: LiveHarness;
  let token: string;
  let vite: ViteDevServer;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tapedeck-pages-"));
    cleanup.defer(() => rm(folder, { recursive: true, force: true }));
    const built = promisify(execFile)(process.execPath, [join(packageFolder, "build.ts"), join(folder, "client")]);
    [guarded, limited] = await Promise.all([
      startLiveHarness({ TAPEDECK_AUTH: "tokens", TAPEDECK_GATEWAY_ORIGINS: "http://localhost:*" }),
      startLiveHarness({ TAPEDECK_LIMITS_CONNECTIONS: "2", TAPEDECK_GATEWAY_ORIGINS: "http://127.0.0.1:*" }),
      built,
    ]);
    for (const harness of [guarded, limited]) {
      cleanup.use(harness);
      await harness.writer("alice").builds(2);
      await harness.seeded.stack.caughtUp();
    }
    const nats = cleanup.adopt(await connectNats({ servers: guarded.seeded.stack.parts.nats.url }), (nc) => nc.close());
    const made = makeToken({ name: "a page", workspace: "acme", roles: ["viewer"], lifetimeMs: 3_600_000 });
    await (await openTokenStore(nats)).create(made);
    token = made.text;

    // The README's configuration with this test's address and a token.
    const readme = await readFile(join(packageFolder, "README.md"), "utf8");
    const [, code = ""] = /```ts\n(\/\/ vite.config.ts\n.*?)```/s.exec(readme) ?? [];
    const named = 'target: "http://127.0.0.1:7052", ws: true';
    expect(code).toContain(named);
    const real = `target: "${guarded.url}", ws: true, headers: { authorization: "Bearer ${token}" }`;
    await writeFile(join(folder, "package.json"), `{"type":"module"}`);
    await writeFile(join(folder, "vite.config.ts"), code.replace(named, real));
    await symlink(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(folder, "node_modules"));
    await writeFile(join(folder, "index.html"), page);
    vite = await createServer({
      root: folder,
      configFile: join(folder, "vite.config.ts"),
      cacheDir: join(folder, "cache"),
      logLevel: "silent",
      server: { host: "127.0.0.1", port: 0, hmr: false },
      plugins: [{ name: "reports", configureServer: ({ middlewares }) => void middlewares.use("/report", take) }],
    });
    cleanup.defer(() => vite.close());
    await vite.listen();
  });
  afterAll(() => cleanup.disposeAsync());

  function take(request: AsyncIterable<Buffer>, response: { end(): void }): void {
    Array.fromAsync(request)
      .then((chunks) => {
        const { page: name, report } = JSON.parse(Buffer.concat(chunks).toString());
        reports.set(name, report);
      })
      .finally(() => response.end());
  }

  async function reportOf(name: string, host: string, request: Readonly<Record<string, string>>): Promise<Report> {
    const [served = ""] = vite.resolvedUrls?.local ?? [];
    const url = `http://${host}:${new URL(served).port}/#${new URLSearchParams({ ...request, page: name })}`;
    await using _browser = openInBrowser([url], join(folder, `profile-${name}`));
    return await until(() => reports.get(name), { message: `the report of ${name}` });
  }

  it("whose origin is not allowed gets an error from the client, which stops retrying", async () => {
    const report = await reportOf("refused", "127.0.0.1", { url: guarded.url, token });
    const thrown = "TapedeckError forbidden";
    expect(report).toEqual({ state: thrown, events: thrown, fetch: [403, "forbidden"], post: 403 });
  });

  it("whose origin matches an allowed pattern can read", async () => {
    const report = await reportOf("allowed", "localhost", { url: guarded.url, token });
    expect(report).toEqual({
      state: "acme/alice/shop/skaffold",
      events: "session.started",
      fetch: [401, "unauthenticated"],
      post: 401,
    });
  });

  it("behind Vite's proxy can read without holding a token", async () => {
    const report = await reportOf("proxied", "127.0.0.1", {});
    expect(report).toMatchObject({
      state: "acme/alice/shop/skaffold",
      events: "session.started",
      fetch: [200, null],
    });
  });

  it("over its limit of event streams gets the next one once there is room; a wrong request ends for good", async () => {
    const report = await reportOf("streams", "127.0.0.1", { url: limited.url, streams: "3" });
    expect(report).toMatchObject({
      third: "limit_exceeded",
      isClosed: false,
      isOnLater: true,
      isWrongClosed: true,
    });
  });
});
