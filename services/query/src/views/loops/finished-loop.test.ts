import { offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import type { OperationRow } from "../../db/schema.ts";
import { millisecondsBetween } from "../../db/timestamp.ts";
import { noCause } from "../causes/cause-columns.ts";
import { finishedLoop } from "./finished-loop.ts";

function operation(kind: string, started_at: string, ended_at: string): OperationRow {
  const [start, end] = [started_at, ended_at].map((at) => ({ at: `${at.slice(0, 19)}.000000Z`, ns: 0 }));
  return {
    source: "default/alice/shop/skaffold",
    workspace: "default",
    developer: "alice",
    project: "shop",
    upstream: "skaffold",
    id: kind,
    session: "A",
    runner: 1,
    loop: 1,
    kind,
    subject: kind === "build" ? "web" : "",
    started_at: start?.at ?? null,
    started_ns: 0,
    ended_at: end?.at ?? null,
    ended_ns: 0,
    duration_ms: start && end ? millisecondsBetween(start, end, 366 * 24 * 3_600_000) : null,
    outcome: "succeeded",
    error_code: "",
    error: "",
    cache_hit: false,
    injected: false,
    platform: "",
    iteration: null,
    start_position: offsetOf(1),
    end_position: offsetOf(2),
    exit_code: null,
    instance: "",
    ...noCause,
  };
}

const loop = operation("loop", "2026-11-20T12:00:00", "2026-11-20T12:00:10");
const next = (started_at: string) => ({ ...operation("loop", started_at, "2026-11-20T13:00:00"), loop: 2 });

it.each([
  ["1970-01-01T00:00:05", "2026-11-20T12:00:08"],
  ["2026-11-20T12:00:02", "2028-11-20T12:00:08"],
])("waits for no build that ran from %s to %s", (from, to) => {
  const row = finishedLoop([loop, operation("build", from, to)], undefined);
  expect(row).toMatchObject({ duration_ms: 10_000, build_ms: 0, other_ms: 10_000, builds: 1 });
});

it("waits for a build whose times are right", () => {
  const row = finishedLoop([loop, operation("build", "2026-11-20T12:00:02", "2026-11-20T12:00:08")], undefined);
  expect(row).toMatchObject({ build_ms: 6_000, other_ms: 4_000 });
});

it.each([
  ["2026-11-20T12:00:13", 3_000],
  ["2026-11-20T12:00:09", 0],
  ["2026-11-20T11:00:00", null],
  ["1970-01-01T00:00:05", null],
])("the next loop that began at %s did so %s ms after its end", (at, ms) => {
  expect(finishedLoop([loop], next(at))?.next_after_ms).toBe(ms);
});
