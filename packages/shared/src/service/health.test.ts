import { expect, test } from "vitest";
import { startHealthServer } from "./health.ts";
import { createMetrics } from "./metrics.ts";

const local = { host: "127.0.0.1", port: 0 };

test("a service is ready when all its checks say so, and else says why", async () => {
  let log: string | undefined = "the log is away";
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
  const away = { ready: false, checks: { log: "the log is away", tables: "no connection" } };
  expect(await ask("/readyz")).toEqual({ status: 503, body: JSON.stringify(away) });
  log = undefined;
  expect((await ask("/readyz?verbose")).status).toBe(200);
  expect((await ask("/metrics")).body).toContain('process_cpu_user_seconds_total{service="test"}');
  expect((await ask("/other")).status).toBe(404);
});

test("a taken port is one sentence that names it", async () => {
  const metrics = createMetrics("test");
  await using first = await startHealthServer({ ...local, checks: {}, metrics });
  const { port } = first;
  await expect(startHealthServer({ host: "127.0.0.1", port, checks: {}, metrics })).rejects.toThrow(
    `port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port`,
  );
});
