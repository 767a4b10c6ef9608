import { describe, expect, it } from "vitest";
import type { Operation, Source, TapedeckEvent } from "../index.ts";
import { withCauses } from "./causes.ts";
import { dateTimeText } from "./format.ts";
import { barOf, headlineOf } from "./headline.ts";
import { foldNow, groupOf, type Lane, loopsOf, type Now, nowOf, placed, usualMs } from "./now.ts";
import { lengthText } from "./step.ts";
import { at, event, failed, inLoop, session, source } from "./testing/events.ts";

const folded = (events: readonly TapedeckEvent[], from: Now = new Map()): Lane => {
  const row = withCauses(events.reduce(foldNow, from), failuresOf(events)).get(source);
  return row ?? expect.fail("no row");
};

/** The operations that a list has of the failures, with the causes. */
function failuresOf(events: readonly TapedeckEvent[]): readonly Operation[] {
  const found = events.filter(({ outcome }) => outcome === "failed");
  return found.map(({ source, operation, position, error }) => {
    const cause = { text: error?.message ?? "", reason: "other" };
    return { source, kind: operation?.kind, subject: operation?.subject ?? "", endPosition: position, cause };
  }) as readonly object[] as readonly Operation[];
}

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

/** `skaffold build` and `skaffold run` have no loops. */
const outside = (from: number, kind: string, fields: Parameters<typeof inLoop>[3] = {}) =>
  inLoop(from, kind, 0, fields);
const ended = event(40, "session.ended", { detail: { reason: "process ended" } });

describe("a row", () => {
  it("says how often Skaffold tried what failed", () => {
    const tries = [0, 1, 2, 3].flatMap((at) => [
      inLoop(at, "sync.started", 2, { subject: "web" }),
      inLoop(at + 0.5, "sync.failed", 2, { subject: "web", ...failed("pod is gone") }),
      inLoop(at + 0.6, "loop.failed", 2, failed("pod is gone")),
    ]);
    const row = folded([started, inLoop(0, "loop.started", 2), ...tries, inLoop(4, "loop.failed", 2, failed("gone"))]);
    expect(headlineOf(row, at(5))).toMatchObject({ sign: "failed", step: "sync web (4 tries)", text: "pod is gone" });
    const before = [started, inLoop(0, "loop.started", 2), ...tries].reduce(foldNow, new Map<string, Lane>());
    expect(headlineOf(before.get(source) ?? expect.fail(), at(5)).text).toBe("failed");
  });

  it("says what failed in a loop that went on and succeeded", () => {
    const events = [
      ...[started, inLoop(0, "loop.started", 2), inLoop(0, "sync.started", 2, { subject: "web" })],
      inLoop(1, "sync.failed", 2, { subject: "web", ...failed("pod is gone") }),
      inLoop(2, "loop.succeeded", 2, { outcome: "succeeded" }),
    ];
    const text = "ready in 2.0 s; sync web failed: pod is gone";
    expect(headlineOf(folded(events), at(5))).toMatchObject({ sign: "succeeded", text });
  });

  it("runs while a loop does, and says how long it usually takes", () => {
    const row = folded([
      started,
      ...good(1, 1),
      inLoop(10, "loop.started", 2),
      inLoop(10, "build.started", 2, { subject: "api" }),
    ]);
    expect(groupOf(row, at(13))).toBe("running");
    expect(headlineOf(row, at(13))).toEqual({
      sign: "running",
      step: "build api",
      text: "3 s (usually 2.0 s)",
      note: "",
    });
  });

  it("is idle when the loop has succeeded", () => {
    const row = folded([started, ...good(1, 1)]);
    expect(groupOf(row, at(20))).toBe("idle");
    expect(headlineOf(row, at(123))).toMatchObject({ sign: "succeeded", text: "ready in 2.0 s", note: "2 min ago" });
  });

  it("fails from the first bad loop to the next good one, also while it tries again", () => {
    const tries = [started, ...good(1, 1), ...bad(10, 2), ...bad(20, 3), inLoop(30, "loop.started", 4)];
    const row = folded(tries);
    expect(groupOf(row, at(251))).toBe("failing");
    expect(headlineOf(row, at(251))).toEqual({
      sign: "failed",
      step: "deploy",
      text: "kubectl apply: exit status 1",
      note: "for 4 min · 2 loops · runs again",
    });
    const good4 = inLoop(32, "loop.succeeded", 4, { outcome: "succeeded" });
    expect(groupOf(folded([...tries, good4]), at(33))).toBe("idle");
  });

  it("is lost when its tap is not heard of, until it is again", () => {
    const lost = event(20, "upstream.lost", { detail: { unheard: true } });
    const row = folded([started, ...good(1, 1), lost]);
    expect([groupOf(row, at(21)), row.lostSince]).toEqual(["lost", at(20)]);
    const again = event(30, "upstream.restored");
    expect(groupOf(folded([started, ...good(1, 1), lost, again]), at(31))).toBe("idle");
  });

  it("ends what nobody saw end with its session", () => {
    const row = folded([started, inLoop(1, "loop.started", 1), event(5, "session.lost")]);
    expect(groupOf(row, at(20))).toBe("idle");
    expect(row.loops[0]).toMatchObject({ outcome: "unknown", endedAt: at(5) });
  });

  it("fails on after its process has ended, for a working day", () => {
    const row = folded([started, ...good(1, 1), ...bad(10, 2), ended]);
    expect(headlineOf(row, at(611))).toMatchObject({
      text: "kubectl apply: exit status 1",
      note: "for 10 min · ended",
    });
    const hours = (count: number) => at(11) + count * 3_600_000;
    expect([groupOf(row, hours(11.9)), groupOf(row, hours(12))]).toEqual(["failing", "idle"]);
    expect(headlineOf(row, hours(12)).text).toBe("the loop failed · process ended");
    const later = [event(50, "session.started"), ...good(60, 1)];
    expect(groupOf(folded([...later], new Map([[source, row]])), at(70))).toBe("idle");
  });

  it("fails with a command that ends with its failure, until one is good", () => {
    const command = (from: number, verb: string, fields: object = {}) =>
      event(from, `command.${verb}`, { operation: { kind: "command", subject: "up", runner: 1, loop: 0 }, ...fields });
    const broken = [started, command(1, "started"), command(9, "finished", failed("no such box")), ended];
    expect(groupOf(folded(broken), at(100))).toBe("failing");
    expect(headlineOf(folded(broken), at(100))).toMatchObject({ step: "vagrant up", text: "no such box" });
    const repaired = folded([
      ...[...broken, event(50, "session.started"), command(51, "started")],
      ...[command(55, "finished", { outcome: "succeeded" }), event(56, "session.ended")],
    ]);
    expect(groupOf(repaired, at(100))).toBe("idle");
    expect(headlineOf(repaired, at(100))).toMatchObject({ step: "vagrant up", text: "done in 4.0 s" });
  });

  it("keeps the ports of its session", () => {
    const port = event(3, "port.forwarded", { detail: { localPort: 8080, resourceName: "web" } });
    expect(folded([started, port, port]).ports).toEqual([{ local: 8080, resource: "web" }]);
    expect(folded([started, port, event(9, "session.ended")]).ports).toEqual([]);
  });
});

describe("steps outside of loops", () => {
  const web = { subject: "web" };
  const build = [
    started,
    outside(1, "build.started", web),
    outside(1, "build.started", { subject: "api" }),
    outside(3, "build.succeeded", { ...web, outcome: "succeeded" }),
  ];
  const built = [...build, outside(4, "build.succeeded", { subject: "api", outcome: "succeeded" })];

  it("run as a round that names them", () => {
    const row = folded(build);
    expect(groupOf(row, at(4))).toBe("running");
    expect(headlineOf(row, at(4))).toMatchObject({ sign: "running", step: "build api", text: "3 s" });
    expect(barOf(row, row.loops[0] ?? expect.fail(), at(4)).pieces).toHaveLength(2);
  });

  it("are one round as long as they go on, and another when the same work begins again", () => {
    const deployed = [outside(5, "deploy.started"), outside(8, "deploy.succeeded", { outcome: "succeeded" })];
    const row = folded([...built, ...deployed, ended]);
    expect(row.loops.map(({ kind, subject, outcome, steps }) => [kind, subject, outcome, steps.length])).toEqual([
      ["round", "build, deploy", "succeeded", 3],
    ]);
    expect(headlineOf(row, at(100))).toMatchObject({ step: "build, deploy", text: "done in 7.0 s", note: "1 min ago" });
    const again = outside(20, "build.started", web);
    expect(folded([...built, ...deployed, again]).loops.map(({ subject }) => subject)).toEqual([
      "build, deploy",
      "build",
    ]);
    // A build that comes from the cache begins and ends in one event.
    const cached = outside(20, "build.cached", { ...web, outcome: "succeeded" });
    expect(folded([...built, ...deployed, cached]).loops).toHaveLength(2);
  });

  it("fail as a loop does, also when the process has ended", () => {
    const row = folded([...build, outside(4, "build.failed", { subject: "api", ...failed("no go.mod") }), ended]);
    expect(groupOf(row, at(100))).toBe("failing");
    expect(headlineOf(row, at(64))).toEqual({
      sign: "failed",
      step: "build api",
      text: "no go.mod",
      note: "for 1 min · ended",
    });
  });

  it("are another round when one has failed, unless they follow from it at once", () => {
    const worse = outside(4, "build.failed", { subject: "api", ...failed("no go.mod") });
    const soon = [
      outside(4.1, "build.started", { subject: "db" }),
      outside(4.2, "build.failed", { subject: "db", ...failed("canceled") }),
    ];
    const repaired = [
      outside(30, "build.started", { subject: "db" }),
      outside(31, "build.succeeded", { subject: "db", outcome: "succeeded" }),
    ];
    const other = [
      outside(40, "build.started", { subject: "job" }),
      outside(41, "build.succeeded", { subject: "job", outcome: "succeeded" }),
    ];
    const outcomes = (events: readonly TapedeckEvent[]) =>
      folded(events).loops.map(({ outcome, steps }) => [outcome, steps.length]);
    expect(outcomes([...build, worse, ...soon])).toEqual([["failed", 3]]);
    expect(outcomes([...build, worse, ...other])).toEqual([
      ["failed", 2],
      ["succeeded", 1],
    ]);
    expect(groupOf(folded([...build, worse, ...soon, ...repaired]), at(50))).toBe("idle");
  });

  it("come in the order of their arrival where a clock was set back", () => {
    const failing = [outside(4_000, "build.started", web), outside(4_001, "build.failed", { ...web, ...failed("no") })];
    const repaired = [
      outside(400, "build.started", web),
      outside(401, "build.succeeded", { ...web, outcome: "succeeded" }),
      outside(402, "deploy.started"),
      outside(403, "deploy.succeeded", { outcome: "succeeded" }),
    ];
    const { loops } = folded([started, ...failing, ...repaired]);
    expect(loops.map(({ outcome, subject }) => [outcome, subject])).toEqual([
      ["failed", "build"],
      ["succeeded", "build, deploy"],
    ]);
  });

  it("are the same in whatever order Skaffold's two streams arrive", () => {
    const v1 = [
      outside(5, "deploy.started"),
      outside(6, "deploy.failed", failed("no")),
      outside(25, "deploy.started"),
      outside(26, "deploy.succeeded", { outcome: "succeeded" }),
    ];
    const v2 = [
      outside(1, "build.cached", { ...web, outcome: "succeeded" }),
      outside(4, "render.started"),
      outside(5, "render.succeeded", { outcome: "succeeded" }),
      outside(20, "build.started", web),
      outside(23, "build.succeeded", { ...web, outcome: "succeeded" }),
    ];
    for (const events of interleavings(v1, v2)) {
      const arrived = events.map((one, index) => ({ ...one, position: `${String(index).padStart(3, "0")}-log` }));
      const rounds = folded([started, ...arrived]).loops.map(({ outcome, startedAt, steps }) => {
        return [startedAt, outcome, ...steps.map(({ kind }) => kind)];
      });
      expect(rounds).toEqual([
        [at(1), "failed", "build", "render", "deploy"],
        [at(20), "succeeded", "build", "deploy"],
      ]);
    }
  });

  it("end with their session, whose failure they keep", () => {
    const lost = event(9, "session.lost");
    expect(folded([...build, lost]).loops[0]).toMatchObject({ outcome: "unknown", endedAt: at(9) });
    const failing = [...build, outside(4, "deploy.started"), outside(5, "deploy.failed", failed("no"))];
    expect(folded([...failing, lost]).loops[0]).toMatchObject({ outcome: "failed", error: "no", endedAt: at(9) });
  });

  it("do not count where there are loops: a step belongs to its own", () => {
    const row = folded([started, ...good(1, 1), ...bad(10, 2)]);
    expect(row.loops.map(({ kind, loop }) => [kind, loop])).toEqual([
      ["loop", 1],
      ["loop", 2],
    ]);
  });
});

const operationOf = (kind: string, subject: string, loop: number, from: number, to: number): Operation => ({
  id: "",
  kind,
  subject,
  instance: "",
  source,
  session,
  runner: 1,
  loop,
  outcome: "succeeded",
  startedAt: new Date(at(from)).toISOString(),
  endedAt: new Date(at(to)).toISOString(),
  durationMs: null,
  errorCode: "",
  error: "",
  cause: null,
  exitCode: null,
  cacheHit: false,
  platform: "",
  startPosition: `00000${from}000-log`,
  endPosition: `00000${to}000-log`,
});

it("the same follows from lists at a position and the events after it as from all events", () => {
  const port = event(4, "port.forwarded", { detail: { localPort: 8080, resourceName: "web" } });
  const early = [outside(0.2, "build.started"), outside(0.4, "build.succeeded", { outcome: "succeeded" })];
  const [before, after] = [[started, ...early, ...good(1, 1), port], bad(10, 2)];
  const listed: Source = {
    source,
    workspace: "acme",
    developer: "bob",
    project: "shop",
    upstream: "skaffold",
    status: "recording",
    currentSession: session,
    lastEventAt: new Date(at(4)).toISOString(),
    lastPosition: "",
    firstPosition: "",
    developerName: "bob",
    projectName: "shop",
    address: "",
    gaps: 0,
    notHeardSince: null,
    heardAt: {},
    clockOffsetMs: null,
    lagMs: null,
  };
  const head = { session, source, labels: { branch: "main" }, startedAt: null, endedAt: null, endReason: null };
  const sessions = [
    {
      ...head,
      startPosition: "",
      endPosition: "",
      upstreamVersion: "",
      gaps: 0,
      exitCode: null,
      commandLine: null,
      cause: null,
    },
  ];
  const operations = [
    ...[operationOf("build", "web", 1, 1, 2), operationOf("loop", "", 1, 1, 3)],
    { ...operationOf("build", "", 0, 0.2, 0.4), startPosition: "000000200-log", endPosition: "000000400-log" },
  ];
  const ports = [port as TapedeckEvent<"port.forwarded">];
  const fromLists = folded(after, nowOf({ sources: [listed], sessions, operations, ports }));
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

it("a loop whose times can't both be right has no length, live and from the lists, and is in no usual time", () => {
  const loop = (loop: number, from: number, to: number, [startedAt, endedAt]: readonly [string, string]) => {
    const listed = { ...operationOf("loop", "", loop, from, to), startedAt, endedAt, durationMs: null };
    const events = [
      inLoop(from, "loop.started", loop, { occurredAt: startedAt }),
      inLoop(to, "loop.succeeded", loop, { outcome: "succeeded", occurredAt: endedAt }),
    ];
    return { listed, events };
  };
  const impossible: readonly (readonly [string, string])[] = [
    ["1970-01-01T00:00:05Z", "2026-01-01T00:00:10Z"],
    ["2026-01-01T00:00:09Z", "1970-01-01T00:00:05Z"],
    ["1970-01-01T00:00:05Z", "1970-01-01T00:00:07Z"],
    ["2026-01-01T00:00:10Z", "2025-12-31T23:00:10Z"],
    ["2024-01-01T00:00:10Z", "2026-01-01T00:00:10Z"],
  ];
  for (const times of impossible) {
    const { listed, events } = loop(2, 20, 21, times);
    const live = folded([started, ...good(1, 1), ...events]);
    const [fromList] = loopsOf([listed]);
    for (const one of [live.loops.at(-1), fromList]) expect(one && lengthText(one, at(30))).toBe("unknown time");
    expect(headlineOf(live, at(30))).toMatchObject({ sign: "succeeded", text: "ready in unknown time" });
    expect(usualMs(live)).toBe(2_000);
    expect(barOf(live, fromList ?? expect.fail(), at(30)).pieces).toMatchObject([{ left: 0, width: 0 }]);
  }
  const running = folded([started, inLoop(3, "loop.started", 1, { occurredAt: "1970-01-01T00:00:05Z" })]);
  expect(headlineOf(running, at(30))).toMatchObject({ sign: "running", text: "unknown time" });
  const unseen = folded([started, inLoop(3, "loop.succeeded", 1, { outcome: "succeeded" })]);
  expect(headlineOf(unseen, at(30))).toMatchObject({ text: "ready in unknown time" });
});

it("a step that began by a clock that was never set begins at an unknown time, not in 1970", () => {
  for (const startedAt of ["1970-01-01T00:00:05Z", null]) {
    const running = (kind: string, loop: number): Operation => ({
      ...operationOf(kind, "", loop, 20, 21),
      startedAt,
      endedAt: null,
      durationMs: null,
      outcome: null,
      endPosition: null,
    });
    const [loop = expect.fail()] = loopsOf([running("loop", 2)]);
    expect(dateTimeText(loop.startedAt, at(30))).toBe("unknown time");
    expect(lengthText(loop, at(30))).toBe("unknown time");
    const [round = expect.fail(), ...more] = loopsOf([operationOf("build", "web", 0, 18, 19), running("deploy", 0)]);
    expect([round.kind, round.startedAt, more]).toEqual(["round", at(18), []]);
    expect(lengthText(round, at(30))).toBe("unknown time");
  }
});

it("a bar is to scale of the usual time, and of its own when it is late", () => {
  const row = folded([started, ...good(1, 1), inLoop(10, "loop.started", 2)]);
  const loop = row.loops[1] ?? expect.fail();
  expect(barOf(row, loop, at(11))).toMatchObject({ usual: 80, pieces: [{ left: 0, width: 40 }] });
  expect(barOf(row, loop, at(14))).toMatchObject({ usual: 50, pieces: [{ left: 0, width: 100 }] });
});

it("a bar names the step that failed first, not one that ran beside it", () => {
  const start = (subject: string) => inLoop(1, "build.started", 1, { subject });
  const fails = (from: number, subject: string) => inLoop(from, "build.failed", 1, { subject, ...failed("no") });
  const row = folded([
    started,
    inLoop(1, "loop.started", 1),
    start("web"),
    start("api"),
    fails(3, "web"),
    fails(4, "api"),
  ]);
  const bar = barOf(row, row.loops[0] ?? expect.fail(), at(5));
  expect(bar.pieces.map(({ step, label }) => [step.subject, label])).toEqual([
    ["api", ""],
    ["web", "build web"],
  ]);
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

function* interleavings<T>(one: readonly T[], other: readonly T[]): Generator<readonly T[]> {
  const [first, ...rest] = one;
  const [otherFirst, ...otherRest] = other;
  if (first === undefined || otherFirst === undefined) {
    yield [...one, ...other];
    return;
  }
  for (const later of interleavings(rest, other)) yield [first, ...later];
  for (const later of interleavings(one, otherRest)) yield [otherFirst, ...later];
}
