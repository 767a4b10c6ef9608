import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { expect, it } from "vitest";
import type { OperationRow } from "../../db/schema.ts";
import { type SkaffoldSession, story } from "../../testing/story.ts";
import { evolve } from "./evolve.ts";

type Expected = Partial<OperationRow> & Pick<OperationRow, "kind">;

const cases: {
  readonly title: string;
  readonly given: (session: SkaffoldSession) => void;
  readonly expected: Expected[];
}[] = [
  {
    title: "a build runs until its end is told",
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
        start_position: 1,
        end_position: 2,
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
      { kind: "sync", outcome: "unknown", duration_ms: null, ended_at: null, end_position: 2 },
      { kind: "sync", outcome: "succeeded", duration_ms: 20, start_position: 2 },
    ],
  },
  {
    title: "what runs when its session ends is unknown and has no duration",
    given: (s) => {
      s.build("web", "started", 0);
      s.phase("deploy", "started", 5);
      s.phase("deploy", "succeeded", 6);
      s.ended("process ended", 100);
    },
    expected: [
      { kind: "build", outcome: "unknown", duration_ms: null, ended_at: null, end_position: 4 },
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
    expected: [{ kind: "build", outcome: "succeeded", duration_ms: 50, end_position: 3 }],
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
    expected: [{ kind: "loop", outcome: "succeeded", duration_ms: 40, error_code: "", error: "", end_position: 5 }],
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
  for (const [index, event] of told(given).entries()) {
    const changed = new Map(evolve(rows, [recorded(event, index)]).map((row) => [row.id, row]));
    rows = [...new Map([...rows.map((row) => [row.id, row] as const), ...changed]).values()];
  }
  expect(rows).toEqual(afterAll(given));
});

it("nanoseconds count", () => {
  const [start, end] = told((s) => {
    s.build("web", "started");
    s.build("web", "succeeded");
  });
  const rows = evolve(
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
  return evolve([], told(given).map(recorded)).sort((a, b) => a.start_position - b.start_position);
}

function told(given: (session: SkaffoldSession) => void): Event[] {
  const tale = story();
  given(tale.session("S"));
  return tale.events;
}

function recorded(event: Event, index: number) {
  return { event, seq: index + 1, recordedAt: new Date(0), subject: "" };
}
