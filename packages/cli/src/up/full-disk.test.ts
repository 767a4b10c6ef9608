import { tmpdir } from "node:os";
import { startHealthServer } from "@tapedeck/shared/service/health";
import { createMetrics, Gauge } from "@tapedeck/shared/service/metrics";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { mendFullDisk } from "./full-disk.ts";

it.each([
  ["room again", 1, 1],
  ["no room yet", Number.MAX_SAFE_INTEGER, 0],
])("a NATS to which the disk was full is started again when there is room: %s", async (_, roomBytes, restarts) => {
  const metrics = createMetrics("ingest");
  const full = new Gauge({ name: "tapedeck_ingest_log_full", help: "?", registers: [metrics] });
  let looks = 0;
  const counting = new Gauge({
    name: "looks",
    help: "?",
    registers: [metrics],
    collect() {
      this.set(++looks);
    },
  });
  expect(counting).toBeDefined();
  await using ingest = await startHealthServer({ host: "127.0.0.1", port: 0, checks: {}, metrics });
  const stop = new AbortController();
  const said: string[] = [];
  let restarted = 0;
  const mending = mendFullDisk({
    ...{ ingest: ingest.address, folder: tmpdir(), lookMs: 5, settleMs: 0, roomBytes },
    nats: {
      async restart() {
        restarted++;
        full.set(0);
      },
    },
    say: (line) => said.push(line),
    signal: stop.signal,
  });
  await until(() => looks > 3, { message: "some looks" });
  expect([restarted, said]).toEqual([0, []]);
  full.set(1);
  const before = looks;
  await until(() => looks > before + 5, { message: "some more looks" });
  stop.abort();
  await mending;
  expect(restarted).toBe(restarts);
  expect(said[0]).toContain("the log's disk is full");
  expect(said.slice(1)).toEqual(restarts === 1 ? ["recording goes on"] : []);
});

it("a NATS that takes nothing though it was started again is not started once more, but in the next full disk", async () => {
  const metrics = createMetrics("ingest");
  const full = new Gauge({ name: "tapedeck_ingest_log_full", help: "?", registers: [metrics] });
  let looks = 0;
  const collect = () => void looks++;
  expect(new Gauge({ name: "looks", help: "?", registers: [metrics], collect })).toBeDefined();
  await using ingest = await startHealthServer({ host: "127.0.0.1", port: 0, checks: {}, metrics });
  const stop = new AbortController();
  let restarted = 0;
  const mending = mendFullDisk({
    ...{ ingest: ingest.address, folder: tmpdir(), lookMs: 5, settleMs: 0, roomBytes: 1 },
    nats: { restart: async () => void restarted++ },
    say: () => {},
    signal: stop.signal,
  });
  const someLooks = () => {
    const before = looks;
    return until(() => looks > before + 5, { message: "some looks" });
  };
  full.set(1);
  await someLooks();
  expect(restarted).toBe(1);
  full.set(0);
  await someLooks();
  full.set(1);
  await someLooks();
  stop.abort();
  await mending;
  expect(restarted).toBe(2);
});
