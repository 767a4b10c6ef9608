import { sourceName } from "@tapedeck/shared/source";
import { afterEach, expect, it, vi } from "vitest";
import { ingestMetrics } from "./metrics.ts";

const nothing = {
  spills: () => [],
  connected: () => [],
  isRecorded: (source: string) => source.includes("/bob/"),
  isFull: () => false,
  atQuota: () => 0,
  damage: () => [],
};

afterEach(() => vi.useRealTimers());

it("has the event loop's delay", async () => {
  const metrics = await ingestMetrics(nothing).registry.metrics();
  expect(metrics).toMatch(/nodejs_eventloop_lag_max_seconds\{service="ingest"\} \d/);
  expect(metrics).toMatch(/nodejs_eventloop_lag_p99_seconds\{service="ingest"\} \d/);
});

it("a source that is not recorded any more is forgotten after an hour", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const { registry, listener, recordingBegan } = ingestMetrics(nothing);
  for (const developer of ["alice", "bob"]) {
    const source = sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" });
    recordingBegan(source);
    const counts = listener(source);
    counts.frame?.("v1", "recorded");
    counts.published?.(2);
    counts.unknownChannel?.("v9");
    counts.onPublishFailure?.({ outcome: "unknown" } as never);
    counts.onSeen?.("rkt.pods", { seconds: 1n, nanos: 0 });
  }
  const named = async (developer: string) => {
    const lines = (await registry.metrics()).split("\n");
    return lines.filter((line) => line.includes(`acme/${developer}/`)).map((line) => line.slice(0, line.indexOf("{")));
  };
  expect(await named("alice")).toEqual(await named("bob"));
  expect(new Set(await named("alice")).size).toBe(7);
  vi.advanceTimersByTime(3_600_001);
  expect(await named("alice")).toEqual([]);
  expect(new Set(await named("bob")).size).toBe(7);
});
