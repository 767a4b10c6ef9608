import { startedAt } from "@tapedeck/query/testing/scenario";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type ApiHarness,
  alice,
  type Body,
  bob,
  day,
  type Item,
  pick,
  startApiHarness,
  time,
} from "../stack/api-harness.ts";

const cleanup = new AsyncDisposableStack();
let harness: ApiHarness;

beforeAll(async () => {
  harness = cleanup.use(await startApiHarness());
});
afterAll(() => cleanup.disposeAsync());

const get = (path: string) => harness.get(path);
const items = (path: string) => harness.items(path);
const positionOf: ApiHarness["positionOf"] = (event) => harness.positionOf(event);
const isKind =
  (expected: string) =>
  ({ kind }: { readonly kind: string }) =>
    kind === expected;

describe("the JSON of the API's resources", () => {
  it("a source", async () => {
    const { body, headers } = await get("sources?developer=alice");
    expect(headers["content-type"]).toContain("application/json");
    expect(body).toEqual({ items: [expect.anything()], position: harness.on.endAt(harness.lastSeq) });
    expect(body.items[0]).toEqual({
      source: "acme/alice/shop/skaffold",
      workspace: "acme",
      developer: "alice",
      project: "shop",
      upstream: "skaffold",
      status: "recording",
      currentSession: "01A2",
      lastEventAt: time(day + 24_000),
      lastPosition: positionOf(alice.events.length - 1),
      firstPosition: positionOf(0),
      developerName: "Alice",
      projectName: "Shop",
      address: "127.0.0.1:50051",
      gaps: 0,
      notHeardSince: null,
      heardAt: {},
      // The log was written long after.
      clockOffsetMs: expect.any(Number),
      lagMs: expect.any(Number),
    });
  });

  it("how late the log had a source's newest event", async () => {
    const [source] = await items("sources?developer=alice");
    const [newest] = await items("events?source=alice/shop&last=1");
    const late = Date.parse(String(newest?.recordedAt)) - Date.parse(String(newest?.occurredAt));
    // Either time may have been rounded to a millisecond.
    expect(Math.abs(Number(source?.lagMs) - late)).toBeLessThanOrEqual(1);
    expect(late).toBeGreaterThan(1_000);
  });

  it("an ended session and a running one", async () => {
    const [latest, earlier] = await items("sessions?source=alice/shop");
    expect(earlier).toEqual({
      session: "01A1",
      source: "acme/alice/shop/skaffold",
      labels: { branch: "main", commit: "abc" },
      startedAt: time(500),
      endedAt: time(10_000),
      endReason: "process ended",
      startPosition: expect.any(String),
      endPosition: positionOf(isKind("session.ended")),
      upstreamVersion: "v2.14.2",
      exitCode: null,
      commandLine: null,
      cause: null,
      gaps: 0,
    });
    expect(latest).toMatchObject({ session: "01A2", endedAt: null, endReason: null, labels: { branch: "fix" } });
  });

  it("an ended operation and a running one", async () => {
    const [failed] = await items("operations?source=alice/shop&outcome=failed&kind=build");
    expect(failed).toEqual({
      id: expect.any(String),
      kind: "build",
      subject: "api",
      instance: "",
      source: "acme/alice/shop/skaffold",
      session: "01A1",
      runner: 1,
      loop: 1,
      startedAt: time(3_000),
      endedAt: time(9_000),
      durationMs: 6_000,
      outcome: "failed",
      errorCode: "BUILD_UNKNOWN",
      error: "api does not build",
      cause: {
        text: "api does not build",
        reason: expect.any(String),
        group: expect.stringContaining("api does not build"),
        file: null,
        line: null,
        advice: null,
        phase: "",
        subject: "",
        tries: 1,
      },
      cacheHit: false,
      platform: "linux/amd64",
      exitCode: null,
      startPosition: expect.stringMatching(/^[1-9][0-9a-z]+00-[a-z0-9]{6}$/),
      endPosition: expect.stringMatching(/^[1-9][0-9a-z]+00-[a-z0-9]{6}$/),
    });
    const [runs] = await items("operations?developer=bob&kind=build");
    expect(runs).toMatchObject({
      subject: "web",
      startedAt: time(30_000),
      endedAt: null,
      durationMs: null,
      outcome: null,
      endPosition: null,
    });
  });

  it("an event, with the upstream's own message only on request", async () => {
    const [event] = await items("events?kind=build.failed");
    const failedBuild = alice.events.find(({ kind }) => kind === "build.failed");
    expect(event).toEqual({
      position: positionOf(isKind("build.failed")),
      recordedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/),
      id: failedBuild?.id,
      source: "acme/alice/shop/skaffold",
      session: "01A1",
      channel: "v1",
      ordinal: Number(failedBuild?.ordinal),
      frameOrdinal: Number(failedBuild?.frame_ordinal),
      part: 0,
      kind: "build.failed",
      subject: "api",
      outcome: "failed",
      error: { code: "BUILD_UNKNOWN", message: "api does not build", suggestions: [] },
      summary: "build.failed",
      occurredAt: time(9_000),
      timeSource: "upstream",
      observedAt: time(9_000),
      operation: { kind: "build", subject: "api", runner: 1, loop: 1 },
      detail: { artifact: "api", hostPlatform: "", targetPlatforms: "linux/amd64", cacheHit: false },
    });
    const [whole] = await items("events?kind=build.failed&original=true");
    expect(whole?.original).toEqual({
      type: "proto.LogEntry",
      size: Number(failedBuild?.original?.size),
      bytes: failedBuild?.original?.bytes.toString("base64"),
    });
  });

  it("state, as of now and as of a moment", async () => {
    const { body } = await get("state?source=alice/shop");
    expect(Object.keys(body)).toEqual([
      ...["source", "session", "sessionEnded", "notHeardSince", "heardAt", "position", "at"],
      ...["upstream", "state"],
    ]);
    expect(body).toMatchObject({
      source: "acme/alice/shop/skaffold",
      session: "01A2",
      sessionEnded: false,
      notHeardSince: null,
      position: harness.on.endAt(harness.lastSeq),
      at: null,
      upstream: "skaffold",
      state: { v1: { buildState: { artifacts: { web: "Complete" } } }, v2: { forwardedPorts: {} } },
    });
    const at = positionOf(isKind("build.failed"));
    expect((await get(`state?source=alice/shop&at=${at}`)).body).toMatchObject({
      session: "01A1",
      position: at,
      at,
      state: { v1: { buildState: { artifacts: { web: "Complete", api: "Failed" } } } },
    });
    expect((await get("state?source=alice/shop&session=01A1")).body).toMatchObject({
      session: "01A1",
      sessionEnded: true,
    });
  });
});

describe("build durations", () => {
  const ofAlice = "stats/builds?developer=alice";

  it("are summed up over all builds", async () => {
    expect((await get(ofAlice)).body).toEqual({
      items: [
        {
          count: 3,
          failed: 1,
          failureRate: 1 / 3,
          p50Ms: 4_000,
          p90Ms: 5_600,
          p99Ms: 5_960,
          cached: 1,
          canceled: 0,
          unknown: 0,
          untimed: 0,
        },
      ],
      position: harness.on.endAt(harness.lastSeq),
    });
  });

  it("are grouped by artifact, developer and day", async () => {
    const days = [startedAt, startedAt + day].map((ms) => new Date(ms).toISOString().slice(0, 10));
    const rows = await items("stats/builds?group=artifact,developer,day");
    expect(
      rows.map(({ artifact, developer, day, count, failed, p50Ms }) => [
        artifact,
        developer,
        day,
        count,
        failed,
        p50Ms,
      ]),
    ).toEqual([
      ["api", "alice", days[0], 1, 1, 6_000],
      ["web", "alice", days[0], 1, 0, 2_000],
      ["web", "alice", days[1], 1, 0, 4_000],
      ["web", "bob", days[0], 0, 0, null],
    ]);
    expect(await items("stats/builds?group=artifact&group=developer&group=day")).toEqual(rows);
  });

  it("are limited to a time range: inclusive `from`, exclusive `to`", async () => {
    const between = (from: number, to: number) => items(`${ofAlice}&from=${time(from)}&to=${time(to)}`);
    expect(pick("count", await between(0, day))).toEqual([2]);
    expect(pick("count", await between(1_000, 3_000))).toEqual([1]);
    expect(pick("count", await between(3_000, 3_001))).toEqual([1]);
    expect(pick("count", await between(2 * day, 3 * day))).toEqual([0]);
  });
});

describe("lists", () => {
  it("come page by page, newest first, each item once", async () => {
    const all = await items("operations");
    const paged: Item[] = [];
    for (let page: string | undefined = ""; page !== undefined; ) {
      const { body }: { body: Body } = await get(`operations?limit=2${page === "" ? "" : `&page=${page}`}`);
      expect(body.items.length).toBeLessThanOrEqual(2);
      paged.push(...body.items);
      page = body.nextPage;
    }
    expect(paged).toEqual(all);
    const seqOf = (item: Item) => seqIn(String(item.startPosition));
    expect(all.map(seqOf)).toEqual(all.map(seqOf).sort((a, b) => b - a));
  });

  it("are available as of a past moment", async () => {
    const at = positionOf(isKind("build.started"));
    expect(pick("session", await items(`sessions?at=${at}`))).toEqual(["01A1"]);
    expect(await items(`operations?at=${at}&kind=build`)).toMatchObject([
      { subject: "web", outcome: null, endedAt: null },
    ]);
    expect(pick("developer", await items(`sources?at=${at}`))).toEqual(["alice"]);
  });

  it.each([
    ["sources?project=SHOP", "source", ["acme/bob/shop/skaffold", "acme/alice/shop/skaffold"]],
    ["sources?source=Alice/Shop", "developer", ["alice"]],
    ["sources?source=alice/shop/skaffold&source=bob/shop", "developer", ["bob", "alice"]],
    ["sources?upstream=rkt", "source", []],
    ["sessions?label=branch=main", "session", ["01A1"]],
    ["sessions?label=branch=main&label=commit=zzz", "session", []],
    ["sessions?session=01A2&session=01B1", "session", ["01B1", "01A2"]],
    ["operations?kind=build&kind=loop&developer=bob", "kind", ["build", "loop"]],
    ["operations?subject=api", "outcome", ["failed"]],
    ["operations?outcome=failed&kind=build&developer=alice", "subject", ["api"]],
    ["operations?session=01B1&kind=build", "subject", ["web"]],
  ])("%s", async (path, field, expected) => {
    expect(pick(field, await items(path))).toEqual(expected);
  });
});

describe("pages of events", () => {
  it.each([
    [
      "kind=build.*&kind=loop.failed&developer=alice",
      [
        "build.started",
        "build.succeeded",
        "build.started",
        "build.failed",
        "loop.failed",
        "build.cached",
        "build.started",
        "build.succeeded",
      ],
    ],
    ["kind=*.failed&subject=api", ["build.failed"]],
    ["outcome=failed", ["build.failed", "loop.failed"]],
    ["session=01B1&kind=loop.*", ["loop.started"]],
    ["source=bob/shop&kind=build.*", ["build.started"]],
  ])("are filtered by %s", async (query, kinds) => {
    expect(pick("kind", await items(`events?${query}`))).toEqual(kinds);
  });

  it("begin after a position or time and end at one, inclusive", async () => {
    const [from, to] = [positionOf(2), positionOf(5)];
    const { body } = await get(`events?after=${from}&until=${to}`);
    expect(pick("position", body.items)).toEqual([3, 4, 5].map(positionOf));
    expect(body.position).toBe(to);
    expect(await items("events?after=2099-01-01T00:00:00Z")).toEqual([]);
    expect(await items("events?after=now")).toEqual([]);
  });

  it("follow each other through all matching events", async () => {
    const found: Item[] = [];
    for (let after: string | undefined = "start"; after !== undefined; ) {
      const { body }: { body: Body } = await get(`events?limit=3&kind=build.*&after=${after}`);
      found.push(...body.items);
      after = body.nextPage;
    }
    expect(found).toEqual(await items("events?kind=build.*"));
  });

  it("give the newest events on request", async () => {
    expect(pick("position", await items("events?last=2&developer=alice"))).toEqual(
      [alice.events.length - 2, alice.events.length - 1].map(positionOf),
    );
    expect(await items("events?last=1000")).toHaveLength(alice.events.length + bob.events.length);
  });
});
