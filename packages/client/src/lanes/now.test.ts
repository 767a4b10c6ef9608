import { describe, expect, it } from "vitest";
import type { Operation, Source, TapedeckEvent } from "../index.ts";
import { barOf, headlineOf } from "./headline.ts";
import { foldNow, groupOf, type Now, nowOf, placed, type Row, usualMs } from "./now.ts";
import { at, event, failed, inLoop, session, source } from "./testing/events.ts";

const folded = (events: readonly TapedeckEvent[], from: Now = new Map()): Row => {
  const row = events.reduce(foldNow, from).get(source);
  return row ?? expect.fail("no row");
};

const started = event(0, "session.started", { detail: { labels: { branch: "main" } } });
const good = (from: number, loop: number) => [
  inLoop(from, "loop.started", loop),
  inLoop(from, "build.started", loop, { subject: "web" }),
  inLoop(from + 1, "build.succeeded", loop, { subject: "web", outcome: "succeeded" }),
  inLoop(from + 2, "loop.succeeded", loop, { outcome: "succeeded" }),
];
const bad = (from: number, loop: number) => [
  inLoop(from, "loop.started", loop),
  inLoop(from, "deploy.started", loop),
  inLoop(from + 1, "deploy.failed", loop, failed("kubectl apply: exit status 1")),
  inLoop(from + 1, "loop.failed", loop, failed("the loop failed")),
];

describe("a row", () => {
  it("runs while a loop does, and says how long it usually takes", () => {
    const row = folded([
      started,
      ...good(1, 1),
      inLoop(10, "loop.started", 2),
      inLoop(10, "build.started", 2, { subject: "api" }),
    ]);
    expect(groupOf(row)).toBe("running");
    expect(headlineOf(row, at(13))).toEqual({
      sign: "running",
      step: "build api",
      text: "3 s (usually 2.0 s)",
      note: "",
    });
  });

  it("is idle when the loop has succeeded", () => {
    const row = folded([started, ...good(1, 1)]);
    expect(groupOf(row)).toBe("idle");
    expect(headlineOf(row, at(123))).toMatchObject({ sign: "succeeded", text: "ready in 2.0 s", note: "2 min ago" });
  });

  it("fails from the first bad loop to the next good one, also while it tries again", () => {
    const tries = [started, ...good(1, 1), ...bad(10, 2), ...bad(20, 3), inLoop(30, "loop.started", 4)];
    const row = folded(tries);
    expect(groupOf(row)).toBe("failing");
    expect(headlineOf(row, at(251))).toEqual({
      sign: "failed",
      step: "deploy",
      text: "kubectl apply: exit status 1",
      note: "for 4 min · 2 loops",
    });
    expect(groupOf(folded([...tries, inLoop(32, "loop.succeeded", 4, { outcome: "succeeded" })]))).toBe("idle");
  });

  it("is lost when its tap is not heard of, until it is again", () => {
    const lost = event(20, "upstream.lost", { detail: { unheard: true } });
    const row = folded([started, ...good(1, 1), lost]);
    expect([groupOf(row), row.lostSince]).toEqual(["lost", at(20)]);
    expect(groupOf(folded([started, ...good(1, 1), lost, event(30, "upstream.restored")]))).toBe("idle");
  });

  it("ends what nobody saw end with its session", () => {
    const row = folded([started, inLoop(1, "loop.started", 1), event(5, "session.lost")]);
    expect(groupOf(row)).toBe("idle");
    expect(row.loops[0]).toMatchObject({ outcome: "unknown", endedAt: at(5) });
  });

  it("keeps the ports of its session", () => {
    const port = event(3, "port.forwarded", { detail: { localPort: 8080, resourceName: "web" } });
    expect(folded([started, port, port]).ports).toEqual([{ local: 8080, resource: "web" }]);
    expect(folded([started, port, event(9, "session.ended")]).ports).toEqual([]);
  });
});

it("the same follows from lists at a position and the events after it as from all events", () => {
  const [before, after] = [[started, ...good(1, 1)], bad(10, 2)];
  const operation = (kind: string, subject: string, from: number, to: number): Operation => ({
    ...{ id: "", kind, subject, instance: "", source, session, runner: 1, loop: 1, outcome: "succeeded" },
    ...{ startedAt: new Date(at(from)).toISOString(), endedAt: new Date(at(to)).toISOString(), durationMs: null },
    ...{ errorCode: "", error: "", exitCode: null, cacheHit: false, platform: "" },
    ...{ startPosition: `00000${from}000-log`, endPosition: `00000${to}000-log` },
  });
  const listed: Source = {
    ...{ source, workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold", status: "recording" },
    ...{ currentSession: session, lastEventAt: new Date(at(3)).toISOString(), lastPosition: "", firstPosition: "" },
    ...{ developerName: "bob", projectName: "shop", address: "", gaps: 0, notHeardSince: null },
  };
  const head = { session, source, labels: { branch: "main" }, startedAt: null, endedAt: null, endReason: null };
  const sessions = [{ ...head, startPosition: "", endPosition: "", upstreamVersion: "", gaps: 0 }];
  const operations = [operation("build", "web", 1, 2), operation("loop", "", 1, 3)];
  const fromLists = folded(after, nowOf({ sources: [listed], sessions, operations }));
  const fromEvents = folded([...before, ...after]);
  expect(fromLists.loops).toEqual(fromEvents.loops);
  expect({ ...fromLists, loops: [] }).toEqual({ ...fromEvents, loops: [] });
});

it("has the labels of the session's last loop, and not those of another session", () => {
  const labelled = (labels: Record<string, string>, of = session) =>
    event(5, "session.labelled", { detail: { labels }, session: of });
  const before = event(0, "session.started", { detail: { labels: { branch: "main", host: "box" } } });
  const changed = labelled({ branch: "fix", commit: "b2" });
  expect(folded([before, changed]).labels).toEqual({ branch: "fix", commit: "b2", host: "box" });
  expect(folded([before, changed, labelled({ branch: "", commit: "c3" })]).labels).toEqual({
    commit: "c3",
    host: "box",
  });
  expect(folded([before, labelled({ branch: "fix" }, "another")]).labels).toEqual({ branch: "main", host: "box" });
});

it("the usual time is the median of the good loops", () => {
  const row = folded([started, ...good(1, 1), ...good(10, 2), ...bad(20, 3)]);
  expect(usualMs(row)).toBe(2_000);
  expect(usualMs(folded([started, ...bad(1, 1)]))).toBeUndefined();
});

it("a bar is to scale of the usual time, and of its own when it is late", () => {
  const row = folded([started, ...good(1, 1), inLoop(10, "loop.started", 2)]);
  const loop = row.loops[1] ?? expect.fail();
  expect(barOf(row, loop, at(11))).toMatchObject({ usual: 80, pieces: [{ left: 0, width: 40 }] });
  expect(barOf(row, loop, at(14))).toMatchObject({ usual: 50, pieces: [{ left: 0, width: 100 }] });
});

describe("a row that changes its group", () => {
  const idle: Now = new Map([[source, folded([started, ...good(1, 1)])]]);
  const running: Now = new Map([[source, folded([started, ...good(1, 1), inLoop(9, "loop.started", 2)])]]);
  const first = placed(new Map(), idle, { now: 0, held: undefined });
  const group = (places: ReturnType<typeof placed>) => places.get(source)?.group;

  it("stays for two seconds, then moves once", () => {
    const soon = placed(first, running, { now: 100, held: undefined });
    const later = placed(soon, running, { now: 2_100, held: undefined });
    expect([soon, later].map(group)).toEqual(["idle", "running"]);
  });

  it("does not move under the pointer, nor for a change that is over before", () => {
    const soon = placed(first, running, { now: 100, held: source });
    expect(group(placed(soon, running, { now: 9_000, held: source }))).toBe("idle");
    expect(group(placed(soon, idle, { now: 9_000, held: undefined }))).toBe("idle");
  });
});
