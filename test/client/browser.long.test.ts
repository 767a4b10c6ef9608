import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect as connectNats } from "nats";
import { expect, it } from "vitest";
import { browser, openInBrowser } from "./browser.ts";
import { startLiveHarness } from "./live-harness.ts";

// The built client in a real browser: on a page of another origin than the gateway's, with a token, through a network
// that breaks and a gateway that is replaced. Needs a Chromium (Debian: apt-get install chromium).

/** What the page reports. */
type Report =
  | { readonly what: "message"; readonly type: string; readonly position: string; readonly id?: string }
  | { readonly what: "state"; readonly source: string }
  | { readonly what: "refused"; readonly name: string; readonly code: string }
  | { readonly what: "connection"; readonly isOpen: boolean }
  | { readonly what: "ended"; readonly error: string };

const page = (url: string, token: string) => `<!doctype html>
<script type="module">
  import { connect } from "/client/index.js";
  let reports = Promise.resolve();
  const report = (body) => {
    reports = reports.then(() => fetch("/report", { method: "POST", body: JSON.stringify(body) }));
  };
  addEventListener("error", ({ message }) => report({ what: "ended", error: message }));
  const url = ${JSON.stringify(url)};
  const tapedeck = connect({
    url,
    token: ${JSON.stringify(token)},
    onConnection: (isOpen) => report({ what: "connection", isOpen }),
  });
  const { source } = await tapedeck.state("alice/shop");
  report({ what: "state", source });
  const stranger = connect({ url, token: "tdk_${"a".repeat(43)}" });
  try {
    for await (const event of stranger.events()) report({ what: "ended", error: "a stranger reads" });
  } catch ({ name, code }) {
    report({ what: "refused", name, code });
  }
  await fetch("/go");
  try {
    for await (const { type, position, event } of tapedeck.subscribe({ kinds: ["build.*"], after: "start" })) {
      report({ what: "message", type, position, id: event?.id });
    }
    report({ what: "ended", error: "" });
  } catch (error) {
    report({ what: "ended", error: String(error) });
  }
</script>`;

it.skipIf(browser === undefined)("reads in a browser across cuts and restarts until its token is revoked", async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tapedeck-browser-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const build = fileURLToPath(new URL("../../packages/client/build.ts", import.meta.url));
  await promisify(execFile)(process.execPath, [build, join(folder, "client")]);

  const reports: Report[] = [];
  let html = "";
  const server = createServer((request, response) => {
    if (request.method === "POST") {
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        reports.push(JSON.parse(body) as Report);
        response.end();
      });
    } else if (request.url === "/go") {
      proxy.cutAfter = 20_000; // in the middle of history
      response.end();
    } else if (request.url === "/") response.setHeader("content-type", "text/html").end(html);
    else {
      readFile(join(folder, request.url ?? "")).then(
        (file) => response.setHeader("content-type", "text/javascript").end(file),
        () => response.writeHead(404).end(),
      );
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const harness = cleanup.use(await startLiveHarness({ TAPEDECK_AUTH: "tokens", TAPEDECK_GATEWAY_ORIGINS: origin }));
  const nats = cleanup.adopt(await connectNats({ servers: harness.seeded.stack.parts.nats.url }), (nc) => nc.close());
  const tokens = await openTokenStore(nats);
  const made = makeToken({ name: "a page", workspace: "acme", roles: ["viewer"], lifetimeMs: 3_600_000 });
  await tokens.create(made);
  const proxy = await harness.cuttable();
  html = page(`http://${proxy.address}`, made.text);

  const writer = harness.writer("alice");
  const built = [...(await writer.builds(200))];
  await harness.seeded.stack.caughtUp();
  cleanup.use(openInBrowser([origin], join(folder, "profile")));

  const endOf = () => reports.find(({ what }) => what === "ended");
  const messages = () => reports.flatMap((report) => (report.what === "message" ? [report] : []));
  const ids = () => messages().flatMap(({ id }) => id ?? []);
  const hasAll = () => endOf() !== undefined || ids().length === built.length;
  await until(hasAll, { message: "the page to have history" });
  for (let round = 0; round < 3; round++) {
    await harness.stop();
    built.push(...(await writer.builds(100)));
    await harness.start();
    await until(hasAll, { message: "the page to have what it missed" });
    built.push(...(await writer.builds(5)));
    await until(hasAll, { message: "the page to be live again" });
  }
  await tokens.revoke(made.record.id);
  const end = await until(endOf, { message: "the page to be refused" });

  expect(ids()).toEqual(built.map(({ id }) => id));
  expect(messages().filter(({ type }) => type === "caught_up")).toHaveLength(1);
  expect(reports.filter(({ what }) => what === "state" || what === "refused")).toEqual([
    { what: "state", source: "acme/alice/shop/skaffold" },
    { what: "refused", name: "TapedeckError", code: "unauthenticated" },
  ]);
  const connections = reports.flatMap((report) => (report.what === "connection" ? [report.isOpen] : []));
  expect(connections.length).toBeGreaterThanOrEqual(9);
  expect(connections.every((isOpen, index) => isOpen === (index % 2 === 0))).toBe(true);
  expect(end).toMatchObject({ error: expect.stringContaining("TapedeckError") });
  console.log(`${built.length} events over ${Math.ceil(connections.length / 2)} connections`);
});
