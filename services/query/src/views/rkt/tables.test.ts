import { PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { describe, expect, it } from "vitest";
import { tablesAfter } from "../../testing/history-tests.ts";
import { type RktSession, rktHost, rktSession, uuid } from "../../testing/rkt-scenario.ts";
import { type Scenario, scenario } from "../../testing/scenario.ts";
import { rktOrder } from "../../testing/tables.ts";

const pod = uuid(1);

/** The rows of every table after the events of a host. */
async function reported(given: (host: RktSession, script: Scenario) => void, batch = 1_000) {
  const script = scenario(rktHost);
  given(rktSession("S", script), script);
  return await tablesAfter(script, rktOrder, batch);
}

it("an image of impossible size and time has a row", async () => {
  const { rkt_images } = await reported((host) => {
    host.described("images");
    host.imported({ id: "sha512-a", size: -(2n ** 63n), import_timestamp: -(2n ** 63n) });
    host.imported({ id: "sha512-b", size: 2n ** 63n - 1n, import_timestamp: 2n ** 63n - 1n });
  });
  expect(rkt_images).toMatchObject([
    { image: "sha512-a", size: 0, imported_at: null },
    { image: "sha512-b", size: Number.MAX_SAFE_INTEGER, imported_at: null },
  ]);
});

describe("a pod's life, in one batch and event by event", () => {
  const life = (host: RktSession) => {
    host.described("pods");
    host.prepared(pod, ["web", "api"], { at: 10 });
    host.started(pod, { at: 20 });
    host.exited(pod, [7, 0], { at: 1_520 });
    host.marked(pod, { at: 2_000 });
    host.deleting(pod, { at: 3_000 });
    host.removed(pod, { at: 4_000 });
  };

  it.each([1_000, 1])("stays in the tables with what was known about it (batches of %i)", async (batch) => {
    const found = await reported(life, batch);
    expect(found.rkt_pods).toEqual([
      {
        session: "S",
        source: rktHost,
        pod,
        name: pod,
        state: "UNDEFINED",
        pid: 4_711,
        cgroup: "",
        created_at: "2026-11-20T09:00:00.010000Z",
        started_at: "2026-11-20T09:00:00.020000Z",
        gc_marked_at: "2026-11-20T09:00:02.000000Z",
        apps: 2,
        gone: true,
        gone_at: "2026-11-20T09:00:04.000000Z",
        first_position: offsetOf(2),
        last_position: offsetOf(11),
      },
    ]);
    const app = { session: "S", pod, image_version: "1.0.0", state: "EXITED", gone: true, first_position: offsetOf(2) };
    expect(found.rkt_apps).toMatchObject([
      { ...app, app: "api", exit_code: 0, image_id: "sha512-api", image_name: "example.com/api" },
      { ...app, app: "web", exit_code: 7, gone_at: "2026-11-20T09:00:04.000000Z" },
    ]);
    expect(found.rkt_networks).toEqual([
      { session: "S", source: rktHost, pod, network: "default", ipv4: "172.16.28.2", ipv6: "" },
    ]);
    expect(found.operations).toMatchObject([
      { kind: "pod", outcome: "failed", duration_ms: 1_500, exit_code: null },
      { kind: "app", subject: `${pod}/web`, outcome: "failed", duration_ms: 1_500, exit_code: 7, error_code: "7" },
      { kind: "app", subject: `${pod}/api`, outcome: "unknown", duration_ms: 1_500, exit_code: 0 },
    ]);
  });
});

it("a pod that the host reports as running after its end runs again, and its later end counts", async () => {
  const life = (host: RktSession) => {
    host.prepared(pod, ["web"], { at: 10 });
    host.started(pod, { at: 20 });
    host.exited(pod, [7], { at: 1_020 });
    host.contradicted(pod, { at: 2_000 });
  };
  const { rkt_pods, rkt_apps } = await reported(life);
  expect(rkt_pods).toMatchObject([{ pod, state: "RUNNING", gone: false }]);
  expect(rkt_apps).toMatchObject([{ app: "web", state: "RUNNING", exit_code: null }]);
  const over = await reported((host) => {
    life(host);
    host.exited(pod, [9], { at: 5_020 });
  });
  expect(over.rkt_pods).toMatchObject([{ pod, state: "EXITED" }]);
  expect(over.operations).toMatchObject([
    { kind: "pod", subject: pod, duration_ms: 5_000 },
    { kind: "app", exit_code: 9, duration_ms: 5_000 },
  ]);
});

it("a pod that was considered gone comes back", async () => {
  const found = await reported((host) => {
    host.prepared(pod, ["web"]);
    host.removed(pod);
    host.seen({ id: pod, cgroup: "/back", state: PodState.POD_STATE_RUNNING });
  });
  expect(found.rkt_pods).toMatchObject([{ cgroup: "/back", gone: false, gone_at: null, first_position: offsetOf(1) }]);
});

it("an app that is removed from a running pod is gone, and its pod is not", async () => {
  const found = await reported((host) => {
    host.prepared(pod, ["web", "api"]);
    host.started(pod);
    host.appRemoved(pod, "web");
  });
  expect(found.rkt_pods).toMatchObject([{ apps: 1, gone: false }]);
  expect(found.rkt_apps).toMatchObject([
    { app: "api", state: "RUNNING", exit_code: null, gone: false, last_position: offsetOf(2) },
    { app: "web", state: "RUNNING", gone: true, last_position: offsetOf(5) },
  ]);
});

it("an image that is gone keeps its row, and out-of-range numbers of an upstream are cut", async () => {
  const found = await reported((host) => {
    const labels = ["arm64", "amd64"].map((value) => ({ Key: "arch", value }));
    host.imported({ id: "sha512-a", name: "example.com/web\0", import_timestamp: 1_700_000_000n, size: 5n, labels });
    host.imported({ id: "sha512-b", import_timestamp: -(2n ** 63n), size: 2n ** 63n - 1n });
    host.imageRemoved("sha512-a", { at: 60_000 });
  });
  expect(found.rkt_images).toMatchObject([
    {
      image: "sha512-a",
      name: "example.com/web\uFFFD",
      imported_at: "2023-11-14T22:13:20.000000Z",
      size: 5,
      labels: { arch: "arm64" },
      gone: true,
      gone_at: "2026-11-20T09:01:00.000000Z",
    },
    { image: "sha512-b", imported_at: null, size: Number.MAX_SAFE_INTEGER, gone: false },
  ]);
});

it("an entry that a description does not list is gone from then on", async () => {
  const found = await reported((host, script) => {
    host.prepared(pod, ["web"]);
    host.prepared(uuid(2), ["web"]);
    const empty = { type: "v1alpha.ListPodsResponse", bytes: Buffer.alloc(0), size: 0n };
    const detail = { $case: "host" as const, value: { part: 0, parts: 1, entries: 0 } };
    script.add({ kind: "inventory.described", session: "S", channel: "pods", original: empty, detail }, 5_000);
  });
  const removed = { gone: true, gone_at: "2026-11-20T09:00:05.000000Z", last_position: offsetOf(3) };
  expect(found.rkt_pods).toMatchObject([removed, removed]);
});

it("an erased session leaves nothing", async () => {
  const found = await reported((host, script) => {
    host.prepared(pod, ["web"]);
    host.started(pod);
    host.imported({ id: "sha512-a" });
    script.add({ kind: "session.erased", session: "S", subject: "S" });
  });
  expect(Object.values(found)).toEqual(Object.keys(rktOrder).map(() => []));
});
