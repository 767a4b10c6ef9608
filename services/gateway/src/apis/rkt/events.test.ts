import { type DeepPartial, Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { rktEvent } from "./events.ts";
import { timestamp } from "./testing/rkt-harness.ts";

const pod = "67e3348c-964e-4d89-a122-adfc8877cdb2";
const observed = "2026-11-20T15:28:24.500Z";
const seen = timestamp(1_795_188_504, 500_000_000);
const reported = { occurred_at: timestamp(1_795_188_503, 999_999_999), observed_at: seen, time_source: 1 } as const;
const checked = { occurred_at: seen, observed_at: seen, time_source: 2 } as const;
const missed = { occurred_at: seen, observed_at: seen, time_source: 3, not_before: timestamp(1_795_188_400) } as const;

type Case = readonly [
  string,
  DeepPartial<Event>,
  { readonly type: number; readonly id: string; readonly from: string; readonly time: bigint },
  Record<string, string>,
];

const podOf = (value: object) => ({ detail: { $case: "pod", value: { pod, name: "shop", ...value } } }) as const;
const appOf = (value: object) => ({ detail: { $case: "app", value: { pod, app: "web", ...value } } }) as const;
const imageOf = (value: object) =>
  ({ detail: { $case: "image", value: { image: "sha512-1", name: "sim.example/web", ...value } } }) as const;

it.each<Case>([
  [
    "a pod that was prepared",
    {
      kind: "pod.prepared",
      ...reported,
      inferred: true,
      ...podOf({ apps: ["web", "log"], pid: -1, state: "PREPARED" }),
    },
    { type: 1, id: pod, from: "shop", time: 1_795_188_503n },
    { apps: "web,log", inferred: "true", time_source: "created_at", observed_at: observed },
  ],
  [
    "one that was given up",
    { kind: "pod.prepare_aborted", ...checked, ...podOf({ apps: ["web"] }) },
    { type: 2, id: pod, from: "shop", time: 1_795_188_504n },
    { time_source: "observed", observed_at: observed },
  ],
  [
    "one that was started",
    {
      kind: "pod.started",
      ...reported,
      ...podOf({ pid: 7, cgroup: "/a", networks: ["default=172.16.28.2", "lab=10.1.0.2"] }),
    },
    { type: 3, id: pod, from: "shop", time: 1_795_188_503n },
    {
      pid: "7",
      cgroup: "/a",
      networks: "default=172.16.28.2,lab=10.1.0.2",
      time_source: "started_at",
      observed_at: observed,
    },
  ],
  [
    "one whose pid nobody knows",
    { kind: "pod.started", ...checked, ...podOf({ pid: -1 }) },
    { type: 3, id: pod, from: "shop", time: 1_795_188_504n },
    { time_source: "observed", observed_at: observed },
  ],
  [
    "an app that was started",
    {
      kind: "app.started",
      ...reported,
      ...appOf({ image_id: "sha512-1", image_name: "sim.example/web", image_version: "1.2.0" }),
    },
    { type: 6, id: pod, from: "web", time: 1_795_188_503n },
    {
      image_id: "sha512-1",
      image_name: "sim.example/web",
      image_version: "1.2.0",
      time_source: "started_at",
      observed_at: observed,
    },
  ],
  [
    "an app that failed",
    { kind: "app.exited", ...checked, ...appOf({ exit_code: 7, exit_code_known: true }) },
    { type: 7, id: pod, from: "web", time: 1_795_188_504n },
    { exit_code: "7", exit_code_known: "true", time_source: "observed", observed_at: observed },
  ],
  [
    "an app that ended with 0, or with nothing",
    { kind: "app.exited", ...checked, ...appOf({ exit_code: 0 }) },
    { type: 7, id: pod, from: "web", time: 1_795_188_504n },
    { exit_code: "0", exit_code_known: "false", time_source: "observed", observed_at: observed },
  ],
  [
    "an app that was taken away while nobody polled",
    { kind: "app.exited", ...missed, ...appOf({ removed: true }) },
    { type: 7, id: pod, from: "web", time: 1_795_188_504n },
    {
      exit_code_known: "false",
      removed: "true",
      not_before: "2026-11-20T15:26:40Z",
      time_source: "observed",
      observed_at: observed,
    },
  ],
  [
    "a pod that ended before it had started",
    { kind: "pod.exited", ...checked, ...podOf({ started: false }) },
    { type: 4, id: pod, from: "shop", time: 1_795_188_504n },
    { started: "false", time_source: "observed", observed_at: observed },
  ],
  [
    "an end that nobody saw, before the pod was marked",
    { kind: "pod.exited", ...missed, occurred_at: reported.occurred_at, ...podOf({ started: true }) },
    { type: 4, id: pod, from: "shop", time: 1_795_188_503n },
    { not_before: "2026-11-20T15:26:40Z", time_source: "gc_marked_at", observed_at: observed },
  ],
  [
    "a pod that was marked",
    { kind: "pod.collected", ...reported, ...podOf({ phase: "marked" }) },
    { type: 5, id: pod, from: "shop", time: 1_795_188_503n },
    { phase: "marked", time_source: "gc_marked_at", observed_at: observed },
  ],
  [
    "an image that was imported",
    { kind: "image.imported", ...reported, ...imageOf({ version: "1.2.0", size: 5_120n }) },
    { type: 8, id: "sha512-1", from: "sim.example/web", time: 1_795_188_503n },
    { version: "1.2.0", size: "5120", time_source: "import_timestamp", observed_at: observed },
  ],
  [
    "an image that was removed",
    { kind: "image.removed", ...checked, ...imageOf({ version: "1.2.0", size: 5_120n }) },
    { type: 9, id: "sha512-1", from: "sim.example/web", time: 1_795_188_504n },
    { version: "1.2.0", time_source: "observed", observed_at: observed },
  ],
])("%s", (_, event, expected, data) => {
  const { data: found, ...rest } = rktEvent(Event.fromPartial(event)) ?? { data: [] };
  expect(rest).toMatchObject(expected);
  expect(found.map(({ Key, value }) => [Key, value])).toEqual(Object.entries(data));
});

describe("facts for which rkt has no type", () => {
  it.each(["pod.changed", "image.changed", "inventory.described", "toString"])("%s", (kind) => {
    expect(rktEvent(Event.fromPartial({ kind, ...reported, ...podOf({}) }))).toBeUndefined();
  });

  it("a kind without its detail", () => {
    expect(rktEvent(Event.fromPartial({ kind: "pod.started", ...reported }))).toBeUndefined();
  });
});
