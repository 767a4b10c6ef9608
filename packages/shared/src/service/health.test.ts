import { request } from "node:http";
import { expect, it } from "vitest";
import { startHealthServer } from "./health.ts";
import { createMetrics } from "./metrics.ts";

const local = { host: "127.0.0.1", port: 0 };

it("a service is ready when all its checks pass, and otherwise says why not", async () => {
  let log: string | undefined = "the log is unavailable";
  const checks = {
    log: () => log,
    tables: async () => {
      if (log !== undefined) throw new Error("no connection");
      return undefined;
    },
  };
  await using health = await startHealthServer({ ...local, checks, metrics: createMetrics("test") });
  const ask = async (path: string) => {
    const response = await fetch(`http://${health.address}${path}`);
    return { status: response.status, body: await response.text() };
  };
  expect((await ask("/healthz")).status).toBe(200);
  const away = { ready: false, checks: { log: "the log is unavailable", tables: "no connection" } };
  expect(await ask("/readyz")).toEqual({ status: 503, body: JSON.stringify(away) });
  log = undefined;
  expect((await ask("/readyz?verbose")).status).toBe(200);
  expect((await ask("/metrics")).body).toContain('process_cpu_user_seconds_total{service="test"}');
  expect((await ask("/other")).status).toBe(404);
});

it("warnings for operators are listed separately and do not affect readiness", async () => {
  let details = {};
  const metrics = createMetrics("test");
  await using health = await startHealthServer({ ...local, checks: {}, metrics, details: () => details });
  const ask = async () => (await fetch(`http://${health.address}/readyz`)).json();
  expect(await ask()).toEqual({ ready: true, checks: {} });
  details = { lostSources: 1 };
  expect(await ask()).toEqual({ ready: true, checks: {}, details });
});

it("a port that is in use is reported in one sentence that names it", async () => {
  const metrics = createMetrics("test");
  await using first = await startHealthServer({ ...local, checks: {}, metrics });
  const { port } = first;
  await expect(startHealthServer({ host: "127.0.0.1", port, checks: {}, metrics })).rejects.toThrow(
    `port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port`,
  );
});

/** Asks as if the server had been found by that name. */
const askAs = (host: string, port: number, path: string) =>
  new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, headers: { host } }, (response) => {
      let body = "";
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode, body }));
    })
      .once("error", reject)
      .end();
  });

it("a page whose name was rebound to this machine gets nothing", async () => {
  const checks = { log: () => undefined };
  const place = { ...local, hosts: ["deck.example.com"] };
  await using health = await startHealthServer({ ...place, checks, metrics: createMetrics("test") });
  const ask = (path: string, host: string) => askAs(host, health.port, path);
  for (const host of [`127.0.0.1:${health.port}`, "localhost", "[::1]:7062", "deck.example.com:7062"]) {
    expect((await ask("/readyz", host)).status).toBe(200);
  }
  for (const path of ["/healthz", "/readyz", "/metrics", "/other"]) {
    const { status, body } = await ask(path, "evil.example:7062");
    expect(status).toBe(403);
    expect(JSON.parse(body).error).toEqual({
      code: "forbidden",
      message: expect.stringContaining('Host "evil.example" is not allowed: add it to gateway.hosts'),
    });
  }
});

it("the host that it listens on needs no setting", async () => {
  const metrics = createMetrics("test");
  await using health = await startHealthServer({ host: "0.0.0.0", port: 0, checks: {}, metrics });
  expect((await askAs(`0.0.0.0:${health.port}`, health.port, "/healthz")).status).toBe(200);
  expect((await askAs(`10.0.0.1:${health.port}`, health.port, "/healthz")).status).toBe(403);
});
