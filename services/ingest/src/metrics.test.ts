import { expect, it } from "vitest";
import { ingestMetrics } from "./metrics.ts";

it("has the event loop's delay", async () => {
  const nothing = { spills: () => [], connected: () => [], isFull: () => false, atQuota: () => 0, damage: () => [] };
  const metrics = await ingestMetrics(nothing).registry.metrics();
  expect(metrics).toMatch(/nodejs_eventloop_lag_max_seconds\{service="ingest"\} \d/);
  expect(metrics).toMatch(/nodejs_eventloop_lag_p99_seconds\{service="ingest"\} \d/);
});
