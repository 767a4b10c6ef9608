import { once } from "node:events";
import { join } from "node:path";
import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { type FakeRkt, startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { Image } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Stack, startStack } from "../stack/stack.ts";

// What alerts are about is brought about, and seen in the metric that the alert reads. When an alert fires on such values
// is tested in alert-expressions.long.test.ts.

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/01-dev-success-3-artifacts-5-iterations"),
);
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let skaffold: FakeSkaffold;
let host: FakeRkt;
let stack: Stack;

beforeAll(async () => {
  // Says more and more, but not all of it at once.
  skaffold = cleanup.use(await startFakeSkaffold({ recording, speed: 20, loop: { pauseMs: 100 } }));
  let messages = 0;
  const saying = (channel: string, { bytes }: { readonly bytes: Buffer }) =>
    channel === "v1" && ++messages === 5 ? Buffer.from([0xff]) : bytes;
  const newer = cleanup.use(await startFakeSkaffold({ recording, saying }));
  const pods = madeUpRecording({
    pods: [[runningPod(0)]],
    images: [[Image.fromPartial({ id: "sha512-1", name: "a" })]],
  });
  host = cleanup.use(await startFakeRkt({ recording: pods, repeatOnReconnect: true }));
  stack = cleanup.use(
    await startStack({
      skaffold: [{ address: skaffold.address }, { project: "newer", address: newer.address }],
      rkt: [{ address: host.address, interval: "50ms" }],
      // Room for some frames only.
      env: { TAPEDECK_INGEST_SPILL_MEMORY_BYTES: "40000", TAPEDECK_INGEST_SPILL_DISK_BYTES: "0" },
    }),
  );
  await newer.playUntil({ v1: 10 });
  await skaffold.playUntil({ v1: 10 });
  await stack.recorded({ v1: 10 });
});

const source = 'source="default/alice/shop/skaffold"';

/** The sum of a metric's values whose labels contain these. Undefined if it has none. */
async function metricValue(metric: string, ...labels: readonly string[]): Promise<number | undefined> {
  const places = [stack.ingestHealth, stack.queryHealth, stack.http];
  const texts = await Promise.all(places.map(async (at) => (await fetch(`http://${at}/metrics`)).text()));
  const lines = texts.join("\n").split("\n");
  const values = lines
    .filter((line) => new RegExp(`^${metric}[{ ]`).test(line) && labels.every((label) => line.includes(label)))
    .map((line) => Number(line.split(" ").at(-1)));
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
}

const reaches = (metric: string, labels: readonly string[], isMet: (value: number) => boolean) =>
  until(async () => isMet((await metricValue(metric, ...labels)) ?? Number.NaN), {
    message: `${metric} ${labels.join()}`,
  });

describe("metrics show the state", () => {
  it("of frames that can't be read", async () => {
    const labels = ['source="default/alice/newer/skaffold"', 'channel="v1"', 'what="unreadable"'];
    await reaches("tapedeck_ingest_frames_total", labels, (value) => value === 1);
  });

  it("of a rkt host that is away, until it is back", async () => {
    const connected = ["tapedeck_ingest_connected", ['source="default/h1/host/rkt"']] as const;
    await reaches(...connected, (value) => value === 1);
    await host.goAway();
    await reaches(...connected, (value) => value === 0);
    await host.comeBack();
    await reaches(...connected, (value) => value === 1);
  });

  it("of connections that use files", async () => {
    const before = (await metricValue("process_open_fds", 'service="gateway"')) ?? Number.NaN;
    const sockets = Array.from({ length: 50 }, () => new WebSocket(`ws://${stack.http}/api/v1/ws`, "tapedeck.v1.json"));
    await Promise.all(sockets.map((socket) => once(socket, "open")));
    expect(await metricValue("process_open_fds", 'service="gateway"')).toBeGreaterThanOrEqual(before + 50);
    expect(await metricValue("process_max_fds", 'service="gateway"')).toBeGreaterThan(before + 50);
    for (const socket of sockets) socket.terminate();
  });

  it("of tables that are behind, as a long statement of a reader makes them", async () => {
    const reader = new Client(stack.database);
    await reader.connect();
    await reader.query("begin; lock table tapedeck_internal.checkpoint in exclusive mode");
    await skaffold.playUntil({ v1: 20 });
    await reaches("tapedeck_query_lag_events", [], (value) => value > 0);
    await reader.end();
    await reaches("tapedeck_query_lag_events", [], (value) => value === 0);
  });

  it("of a database that breaks projecting off", async () => {
    const before = (await metricValue("tapedeck_query_interruptions_total")) ?? 0;
    const admin = new Client(stack.database);
    await admin.connect();
    await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'tapedeck-query' and datname = current_database()`);
    await admin.end();
    await reaches("tapedeck_query_interruptions_total", [], (value) => value > before);
    await reaches("tapedeck_ready", ['service="query"', 'check="projection"'], (value) => value === 1);
  });

  it("of a log that is away: what is not ready, waits, is not acknowledged and is lost, and of its end", async () => {
    await stack.parts.nats.kill();
    const playing = skaffold.play();
    await reaches("tapedeck_ready", ['service="ingest"', 'check="log"'], (value) => value === 0);
    await reaches("tapedeck_ready", ['service="gateway"', 'check="log"'], (value) => value === 0);
    await reaches("tapedeck_ingest_spill_items", [source], (value) => value > 0);
    await reaches("tapedeck_ingest_spill_dropped", [source], (value) => value > 0);
    await reaches("tapedeck_ingest_publish_failures_total", [source, 'outcome="unknown"'], (value) => value > 0);
    skaffold.pause();
    await stack.parts.nats.restart();
    await reaches("tapedeck_ingest_spill_items", [source], (value) => value === 0);
    await reaches("tapedeck_ready", ['check="log"'], (value) => value === 3);
    await skaffold.end("kill");
    await playing;
  });
});
