import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import type { OperationRow } from "../../db/schema.ts";
import { type RktSession, rktHost, rktSession, uuid } from "../../testing/rkt-scenario.ts";
import { type SkaffoldSession, scenario, startedAt, timestamp } from "../../testing/scenario.ts";
import { rowsAfter } from "./rows.ts";

type Expected = Partial<OperationRow> & Pick<OperationRow, "kind">;

const cases: {
  readonly title: string;
  readonly given: (session: SkaffoldSession) => void;
  readonly expected: Expected[];
}[] = [
  {
    title: "a build runs until its end is recorded",
    given: (s) => s.build("web", "started", 10),
    expected: [
      { kind: "build", outcome: null, started_at: "2026-11-20T09:00:00.010000Z", ended_at: null, duration_ms: null },
    ],
  },
  {
    title: "start and end make one operation with a duration",
    given: (s) => {
      s.build("web", "started", 10);
      s.build("web", "succeeded", 1_510);
    },
    expected: [
      {
        kind: "build",
        subject: "web",
        outcome: "succeeded",
        duration_ms: 1_500,
        start_position: offsetOf(1),
        end_position: offsetOf(2),
        platform: "linux/amd64",
      },
    ],
  },
  {
    title: "a failure keeps its error",
    given: (s) => {
      s.build("web", "started");
      s.build("web", "failed");
    },
    expected: [{ kind: "build", outcome: "failed", error_code: "BUILD_UNKNOWN", error: "web does not build" }],
  },
  {
    title: "builds of two artifacts overlap",
    given: (s) => {
      s.build("web", "started", 0);
      s.build("api", "started", 5);
      s.build("web", "succeeded", 10);
      s.build("api", "canceled", 11);
    },
    expected: [
      { kind: "build", subject: "web", outcome: "succeeded", duration_ms: 10 },
      { kind: "build", subject: "api", outcome: "canceled", duration_ms: 6 },
    ],
  },
  {
    title: "the same artifact in the next loop, or of the next runner, is another operation",
    given: (s) => {
      s.configured();
      s.loopStarted();
      s.build("web", "started");
      s.loopStarted();
      s.build("web", "started");
      s.configured();
      s.loopStarted();
      s.build("web", "started");
      s.build("web", "succeeded");
    },
    expected: [
      { kind: "loop", runner: 1, loop: 1, iteration: 0, outcome: null },
      { kind: "build", runner: 1, loop: 1, outcome: null },
      { kind: "loop", runner: 1, loop: 2, iteration: 1, outcome: null },
      { kind: "build", runner: 1, loop: 2, outcome: null },
      { kind: "loop", runner: 2, loop: 1, iteration: 0, outcome: null },
      { kind: "build", runner: 2, loop: 1, outcome: "succeeded" },
    ],
  },
  {
    title: "a cache hit is over at once and has no duration",
    given: (s) => s.cached("web", 10),
    expected: [
      {
        kind: "build",
        outcome: "succeeded",
        cache_hit: true,
        duration_ms: null,
        started_at: "2026-11-20T09:00:00.010000Z",
        ended_at: "2026-11-20T09:00:00.010000Z",
      },
    ],
  },
  {
    title: "a second start closes the first as unknown",
    given: (s) => {
      s.phase("sync", "started", 0);
      s.phase("sync", "started", 10);
      s.phase("sync", "succeeded", 30);
    },
    expected: [
      { kind: "sync", outcome: "unknown", duration_ms: null, ended_at: null, end_position: offsetOf(2) },
      { kind: "sync", outcome: "succeeded", duration_ms: 20, start_position: offsetOf(2) },
    ],
  },
  {
    title: "an operation that runs when its session ends is unknown and has no duration",
    given: (s) => {
      s.build("web", "started", 0);
      s.phase("deploy", "started", 5);
      s.phase("deploy", "succeeded", 6);
      s.ended("process ended", 100);
    },
    expected: [
      { kind: "build", outcome: "unknown", duration_ms: null, ended_at: null, end_position: offsetOf(4) },
      { kind: "deploy", outcome: "succeeded", duration_ms: 1 },
    ],
  },
  {
    title: "an end that comes after its session's end still counts",
    given: (s) => {
      s.build("web", "started", 0);
      s.ended("process ended", 100);
      s.build("web", "succeeded", 50);
    },
    expected: [{ kind: "build", outcome: "succeeded", duration_ms: 50, end_position: offsetOf(3) }],
  },
  {
    title: "a loop that says three times that it failed, and then not, ends with the last word",
    given: (s) => {
      s.loopStarted(0);
      s.loopEnded("failed", 10);
      s.loopEnded("failed", 20);
      s.loopEnded("failed", 30);
      s.loopEnded("succeeded", 40);
    },
    expected: [
      { kind: "loop", outcome: "succeeded", duration_ms: 40, error_code: "", error: "", end_position: offsetOf(5) },
    ],
  },
  {
    title: "an end without a start is known to have ended, not for how long it ran",
    given: (s) => s.build("web", "canceled", 10),
    expected: [
      {
        kind: "build",
        outcome: "canceled",
        started_at: null,
        ended_at: "2026-11-20T09:00:00.010000Z",
        duration_ms: null,
      },
    ],
  },
  {
    title: "an end before its start (clocks of parallel senders) took no time",
    given: (s) => {
      s.build("web", "started", 10);
      s.build("web", "succeeded", 9);
    },
    expected: [{ kind: "build", outcome: "succeeded", duration_ms: 0 }],
  },
  {
    title: "mirrors, text and resources are no operations",
    given: (s) => {
      s.mirrored("web", "InProgress");
      s.text("Building [web]...\n");
      s.resource("deployment/web", "pending");
    },
    expected: [],
  },
];

it.each(cases)("$title", ({ given, expected }) => {
  expect(afterAll(given)).toMatchObject(expected);
});

it.each(cases)("$title, also one event at a time", ({ given }) => {
  let rows: OperationRow[] = [];
  for (const [index, event] of reported(given).entries()) {
    const changed = new Map(rowsAfter(rows, [recorded(event, index)]).map((row) => [row.id, row]));
    rows = [...new Map([...rows.map((row) => [row.id, row] as const), ...changed]).values()];
  }
  expect(rows).toEqual(afterAll(given));
});

const pod = uuid(1);
const web = { kind: "app", subject: `${pod}/web` };

const ofHosts: {
  readonly title: string;
  readonly given: (host: RktSession) => void;
  readonly expected: Expected[];
}[] = [
  {
    title: "a pod and its apps run until their ends, which say how they were",
    given: (host) => {
      host.prepared(pod, ["web", "api"], { at: 0 });
      host.started(pod, { at: 10 });
      host.exited(pod, [7, 0], { at: 2_010 });
      host.marked(pod, { at: 3_000 });
    },
    expected: [
      { kind: "pod", subject: pod, outcome: "failed", duration_ms: 2_000, exit_code: null, runner: 0, loop: 0 },
      { ...web, outcome: "failed", duration_ms: 2_000, exit_code: 7, error_code: "7", error: "exited with 7" },
      { kind: "app", subject: `${pod}/api`, outcome: "unknown", duration_ms: 2_000, exit_code: 0, error: "" },
    ],
  },
  {
    title: "an app that is started again in its pod runs a second time",
    given: (host) => {
      host.prepared(pod, ["web"], { at: 0 });
      host.started(pod, { at: 10 });
      host.appExited(pod, "web", 7, { at: 20 });
      host.appStarted(pod, "web", { at: 100 });
      host.exited(pod, [0], { at: 500 });
    },
    expected: [
      { kind: "pod", outcome: "unknown", duration_ms: 490 },
      { ...web, outcome: "failed", duration_ms: 10, exit_code: 7 },
      { ...web, outcome: "unknown", duration_ms: 400, exit_code: 0, error_code: "" },
    ],
  },
  {
    title: "an app that is started again, and nobody saw its end, did end",
    given: (host) => {
      host.prepared(pod, ["web"], { at: 0 });
      host.started(pod, { at: 10 });
      host.appStarted(pod, "web", { at: 100 });
    },
    expected: [
      { kind: "pod", outcome: null },
      { ...web, outcome: "unknown", duration_ms: null, ended_at: null, exit_code: null },
      { ...web, outcome: null, started_at: "2026-11-20T09:00:00.100000Z" },
    ],
  },
  {
    title: "a pod that ended before it had started has no duration",
    given: (host) => {
      host.prepared(pod, ["web"], { at: 0 });
      host.failed(pod, { at: 10 });
    },
    expected: [
      { kind: "pod", outcome: "unknown", started_at: null, duration_ms: null, ended_at: "2026-11-20T09:00:00.010000Z" },
    ],
  },
  {
    title: "of a pod that vanished while it ran no code is known",
    given: (host) => {
      host.prepared(pod, ["web"], { at: 0 });
      host.started(pod, { at: 10 });
      const not_before = timestamp(startedAt + 50);
      host.removed(pod, { at: 60, more: { time_source: TimeSource.TIME_SOURCE_INTERVAL, not_before } });
    },
    expected: [
      { kind: "pod", outcome: "unknown", duration_ms: 50, ended_at: "2026-11-20T09:00:00.060000Z" },
      { ...web, outcome: "unknown", duration_ms: 50, exit_code: null },
    ],
  },
  {
    title: "pods that are prepared, changed and collected, and images, are no operations",
    given: (host) => {
      host.described("pods");
      host.prepared(pod, ["web"]);
      host.seen({ id: pod });
      host.imported({ id: "sha512-a" });
      host.removed(pod);
    },
    expected: [],
  },
];

it.each(ofHosts)("$title", ({ given, expected }) => {
  const script = scenario(rktHost);
  given(rktSession("S", script));
  const rows = rowsAfter([], script.events.map(recorded)).sort((a, b) => a.start_position - b.start_position);
  expect(rows).toMatchObject(expected);
  expect(rows).toHaveLength(expected.length);
});

it("nanoseconds count", () => {
  const [start, end] = reported((s) => {
    s.build("web", "started");
    s.build("web", "succeeded");
  });
  const rows = rowsAfter(
    [],
    [
      recorded({ ...(start as Event), occurred_at: { seconds: 1_700_000_000n, nanos: 999_999_999 } }, 0),
      recorded({ ...(end as Event), occurred_at: { seconds: 1_700_000_001n, nanos: 1_999_998 } }, 1),
    ],
  );
  expect(rows).toMatchObject([
    { started_at: "2023-11-14T22:13:20.999999Z", started_ns: 999, ended_ns: 998, duration_ms: 1 },
  ]);
});

function afterAll(given: (session: SkaffoldSession) => void): OperationRow[] {
  return rowsAfter([], reported(given).map(recorded)).sort((a, b) => a.start_position - b.start_position);
}

function reported(given: (session: SkaffoldSession) => void): Event[] {
  const script = scenario();
  given(script.session("S"));
  return script.events;
}

function recorded(event: Event, index: number) {
  return { event, offset: offsetOf(index + 1), recordedAt: new Date(0), subject: "" };
}
