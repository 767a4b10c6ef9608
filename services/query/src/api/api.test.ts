import { State } from "@tapedeck/proto/skaffold/v1/skaffold";
import { sourceName } from "@tapedeck/shared/source";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Query } from "../query.ts";
import { queryClient } from "../testing/client.ts";
import { scenario, startedAt, timestamp } from "../testing/scenario.ts";
import { reaches, type Stage, stage } from "../testing/stage.ts";

/** Alice builds twice, in two sessions; Bob's first loop runs. Carol is somebody else's. */
const alice = scenario();
alice.add({
  kind: "source.added",
  detail: { $case: "source_detail", value: { developer_name: "Alice", project_name: "Shop" } },
});
alice.add({
  kind: "upstream.connected",
  session: "A1",
  detail: { $case: "upstream", value: { address: "127.0.0.1:50051" } },
});
const first = alice.session("A1");
first.started({ branch: "main" });
first.configured();
first.loopStarted();
first.build("web", "started", 1_000);
first.build("web", "succeeded", 3_000);
first.build("api", "started", 3_000);
first.build("api", "failed", 9_000);
first.loopEnded("failed", 9_001);
alice.add({ kind: "upstream.lost", session: "A1" });
first.ended();
alice.add({ kind: "upstream.connected", session: "A2" });
const second = alice.session("A2");
second.started({ branch: "fix" });
second.configured();
second.loopStarted();
second.cached("web");
second.build("api", "started", 20_000);
second.build("api", "succeeded", 24_000);
second.loopEnded("succeeded");

const bob = scenario(sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" }));
const running = bob.session("B1");
running.started();
running.configured();
running.loopStarted();
running.build("web", "started");

const carol = scenario(sourceName({ workspace: "globex", developer: "carol", project: "site", upstream: "skaffold" }));
const hers = carol.session("C1");
hers.started({ branch: "main" });
hers.configured();
hers.build("secret", "started");
hers.build("secret", "succeeded");

const known = scenario(sourceName({ workspace: "acme", developer: "dave", project: "shop", upstream: "skaffold" }));
known.add({ kind: "source.added" });

let on: Stage;
let query: Query;
let ask: ReturnType<typeof queryClient>;
/** Positions of Alice's events. */
let positions: number[];
let end: number;

beforeAll(async () => {
  on = await stage();
  query = await on.startQuery();
  positions = await on.write(alice.events);
  await on.write(bob.events);
  const hersEnd = (await on.writeIn("globex", carol.events)).at(-1) ?? 0;
  end = (await on.write(known.events)).at(-1) ?? 0;
  await reaches(query, end);
  await reaches(query, hersEnd, "globex");
  ask = queryClient(query.address);
});

afterAll(async () => {
  ask[Symbol.dispose]();
  await query[Symbol.asyncDispose]();
  await on[Symbol.asyncDispose]();
});

/** Position of Alice's event of a kind in a session. */
function at(kind: string, session = "A1"): string {
  const index = alice.events.findIndex((event) => event.kind === kind && event.session === session);
  return on.at(positions[index] ?? -1);
}

const source = alice.source;

async function artifacts(request: Parameters<typeof ask.readState>[0]) {
  const { head, rows } = await ask.readState(request);
  return { ...head, artifacts: State.decode(rows[0] ?? Buffer.of()).buildState?.artifacts };
}

describe("ReadState", () => {
  it("returns the state of the newest session, with the position that it reflects", async () => {
    expect(await artifacts({ source })).toMatchObject({
      position: on.endAt(end),
      source,
      session: "A2",
      session_ended: false,
      artifacts: { api: "Complete" },
    });
  });

  it("returns the last state of an older session", async () => {
    expect(await artifacts({ source, session: "A1" })).toMatchObject({
      session_ended: true,
      artifacts: { web: "Complete", api: "Failed" },
    });
  });

  it("returns the state as of an earlier position", async () => {
    const mid = at("build.started");
    expect(await artifacts({ source, at: mid })).toMatchObject({
      position: mid,
      source,
      session: "A1",
      session_ended: false,
      artifacts: { web: "In Progress" },
    });
    expect(await artifacts({ source, at: at("session.ended") })).toMatchObject({ session: "A1", session_ended: true });
  });

  it("accepts a time as a position", async () => {
    const { position } = await artifacts({ source, at: new Date().toISOString() });
    expect(position).toBe(on.endAt(end));
    await expect(ask.readState({ source, at: new Date(0).toISOString() })).rejects.toMatchObject({
      code: "before_first",
    });
  });

  it("returns Skaffold's empty state for a source without a session", async () => {
    const { head, rows } = await ask.readState({ source: known.source });
    expect(head).toMatchObject({ session: "", session_ended: false });
    expect(rows).toEqual([Buffer.of()]);
  });

  it.each([
    ["a source that nobody recorded", () => ({ source: "acme/nobody/shop/skaffold" }), { code: "unknown_source" }],
    ["another workspace's source", () => ({ source: carol.source }), { code: "unknown_source" }],
    ["a session of another source", () => ({ source, session: "B1" }), { code: "unknown_session" }],
    ["a moment before the source", () => ({ source: bob.source, at: at("build.started") }), { code: "before_first" }],
    [
      "a moment before the session",
      () => ({ source, session: "A2", at: at("build.started") }),
      { code: "before_first" },
    ],
    ["a position of another log", () => ({ source, at: eventPosition("other1", 1) }), { code: "position_foreign" }],
    [
      "a position beyond the end",
      () => ({ source, at: on.at(end + 1) }),
      { code: "position_future", details: { latest: () => on.endAt(end) } },
    ],
    ["no position", () => ({ source, at: "yesterday" }), { code: "invalid_argument", details: { field: "at" } }],
    [
      "an unknown collection",
      () => ({ source, collection: "skaffold.v3" }),
      { code: "invalid_argument", details: { field: "collection" } },
    ],
  ])(
    "refuses %s",
    async (_what, request, { code, details = {} }: { code: string; details?: Record<string, unknown> }) => {
      const expected = Object.fromEntries(
        Object.entries(details).map(([name, value]) => [name, typeof value === "function" ? value() : value]),
      );
      await expect(ask.readState(request())).rejects.toMatchObject({ code, details: expected });
    },
  );
});

describe("ListSources", () => {
  it("returns the newest first, with the status of each", async () => {
    const { items, position } = await ask.listSources();
    expect(position).toBe(on.endAt(end));
    expect(items.map((item) => [item.developer, item.status, item.current_session])).toEqual([
      ["dave", "waiting", ""],
      ["bob", "lost", "B1"],
      ["alice", "recording", "A2"],
    ]);
    expect(items[2]).toMatchObject({
      developer_name: "Alice",
      project_name: "Shop",
      address: "127.0.0.1:50051",
      first_position: on.at(positions[0] ?? 0),
      last_position: on.at(positions.at(-1) ?? 0),
    });
  });

  it("returns them as of an earlier position", async () => {
    const { items } = await ask.listSources({ at: at("session.ended") });
    expect(items).toMatchObject([
      { developer: "alice", status: "waiting", current_session: "A1", last_position: at("session.ended") },
    ]);
    const before = await ask.listSources({ at: at("build.failed") });
    expect(before.items).toMatchObject([{ status: "recording" }]);
  });

  it("returns the same lag of a source that was lost then, whenever it is asked", async () => {
    const lost = async () => (await ask.listSources({ at: at("upstream.lost") })).items[0];
    const answer = await lost();
    expect(answer).toMatchObject({ developer: "alice", status: "lost", lag_ms: expect.any(BigInt) });
    const answeredAt = Date.now();
    await until(() => Date.now() > answeredAt, { message: "the clock to go on" });
    expect(await lost()).toEqual(answer);
  });

  it.each([
    [{ developers: ["bob"] }, ["bob"]],
    [{ sources: ["alice/shop"] }, ["alice"]],
    [{ sources: ["alice/shop/skaffold", "acme/bob/shop/skaffold"] }, ["bob", "alice"]],
    [{ upstreams: ["rkt"] }, []],
    [{ sources: ["globex/carol/site/skaffold"] }, []],
    [{ workspace: "globex" }, ["carol"]],
  ])("filters by %o", async (filter, developers) => {
    const { items } = await ask.listSources(filter);
    expect(items.map(({ developer }) => developer)).toEqual(developers);
  });

  it("comes in pages", async () => {
    const seen: string[] = [];
    for (let page = "", more = true; more; more = page !== "") {
      const { items, next_page } = await ask.listSources({ limit: 1, page });
      seen.push(...items.map(({ developer }) => developer));
      page = next_page;
    }
    expect(seen).toEqual(["dave", "bob", "alice"]);
    await expect(ask.listSources({ page: "?" })).rejects.toMatchObject({ details: { field: "page" } });
  });
});

describe("ListSessions", () => {
  it("returns the newest first", async () => {
    const { items } = await ask.listSessions({ sources: [source] });
    expect(items).toMatchObject([
      { session: "A2", ended: false, labels: { branch: "fix" }, end_position: on.at(positions.at(-1) ?? 0) },
      {
        session: "A1",
        ended: true,
        end_reason: "process ended",
        upstream_version: "v2.14.2",
        start_position: at("upstream.connected"),
        end_position: at("session.ended"),
      },
    ]);
  });

  it("filters by label and by time", async () => {
    expect((await ask.listSessions({ labels: { branch: "main" } })).items).toMatchObject([{ session: "A1" }]);
    const later = { from: timestamp(startedAt + 9_002), sources: [source] };
    expect((await ask.listSessions(later)).items).toMatchObject([{ session: "A2" }]);
  });

  it("returns them as of an earlier position", async () => {
    const then = await ask.listSessions({ sources: [source], at: at("build.failed") });
    expect(then.items).toMatchObject([
      { session: "A1", ended: false, end_reason: "", end_position: at("build.failed") },
    ]);
    expect(then.items[0]?.ended_at).toBeUndefined();
  });
});

describe("ListOperations", () => {
  it("returns builds with their outcomes", async () => {
    const { items } = await ask.listOperations({ kinds: ["build"], sources: [source] });
    expect(items.map((item) => [item.subject, item.outcome, item.duration_ms, item.cache_hit])).toEqual([
      ["api", "succeeded", 4_000n, false],
      ["web", "succeeded", undefined, true],
      ["api", "failed", 6_000n, false],
      ["web", "succeeded", 2_000n, false],
    ]);
    expect(items[2]).toMatchObject({
      error_code: "BUILD_UNKNOWN",
      error: "api does not build",
      platform: "linux/amd64",
    });
  });

  it("returns those of one loop", async () => {
    const { items } = await ask.listOperations({ sessions: ["A1"], runner: 1, loop: 1 });
    expect(items.length).toBeGreaterThan(0);
    expect(items.every(({ runner, loop }) => runner === 1 && loop === 1)).toBe(true);
    const all = await ask.listOperations({ sessions: ["A1"] });
    expect(items).toEqual(all.items.filter(({ runner, loop }) => runner === 1 && loop === 1));
    expect((await ask.listOperations({ sessions: ["A1"], runner: 1, loop: 9 })).items).toEqual([]);
    const outside = await ask.listOperations({ sessions: ["A1"], loop: 0 });
    expect(outside.items).toEqual(all.items.filter(({ loop }) => loop === 0));
  });

  it("returns the newest of each source, over pages as in one", async () => {
    const all = await ask.listOperations({ limit: 1_000 });
    type OperationsFilter = { readonly kinds: string[]; readonly sessions?: string[]; readonly subjects?: string[] };
    const newest = ({ kinds, sessions, subjects }: OperationsFilter, max: number) => {
      const own = all.items.filter(
        ({ kind, session, subject }) =>
          kinds.includes(kind) &&
          (sessions ?? [session]).includes(session) &&
          (subjects ?? [subject]).includes(subject),
      );
      return own.filter((one) => own.filter(({ source }) => source === one.source).indexOf(one) < max);
    };
    expect(new Set(all.items.map((one) => one.source)).size).toBeGreaterThan(1);
    const sessions = [...new Set(all.items.map(({ session }) => session))];
    const subjects = [...new Set(all.items.map(({ subject }) => subject))].filter((subject) => subject !== "");
    const requests: readonly (readonly [OperationsFilter, number])[] = [
      [{ kinds: ["build"] }, 2],
      [{ kinds: ["build", "loop", "pod", "app"] }, 3],
      [{ kinds: ["loop"] }, 1],
      // Few candidates, which are all read.
      [{ kinds: ["build", "loop", "pod", "app"], sessions }, 3],
      [{ kinds: ["build", "pod", "app"], subjects }, 2],
    ];
    for (const [filter, max] of requests) {
      const request = { ...filter, per_source: max };
      const { items } = await ask.listOperations(request);
      expect(items).toEqual(newest(filter, max));
      expect(items.length).toBeGreaterThan(0);
      const paged = [];
      for (let page = ""; ; ) {
        const answer = await ask.listOperations({ ...request, limit: 1, page });
        paged.push(...answer.items);
        page = answer.next_page;
        if (page === "") break;
      }
      expect(paged).toEqual(items);
    }
  });

  it("filters by outcome", async () => {
    const { items } = await ask.listOperations({ outcomes: ["failed"] });
    expect(items.map(({ kind, session }) => `${kind} ${session}`)).toEqual(["build A1", "loop A1"]);
  });

  it("returns them as of an earlier position", async () => {
    const { items } = await ask.listOperations({ kinds: ["build"], at: at("build.started") });
    expect(items).toMatchObject([{ subject: "web", outcome: "", end_position: "" }]);
    expect(items[0]?.ended_at).toBeUndefined();
    expect((await ask.listOperations({ outcomes: ["succeeded"], at: at("build.started") })).items).toEqual([]);
  });
});

describe("the filter of lists", () => {
  it.each([
    [
      { artifacts: ["web"] },
      ["bob", "alice"],
      ["B1", "A2", "A1"],
      ["B1 build web", "B1 loop", "A2 build web", "A2 loop", "A1 build web", "A1 loop"],
    ],
    [{ artifacts: ["api"] }, ["alice"], ["A2", "A1"], ["A2 build api", "A2 loop", "A1 build api", "A1 loop"]],
    [
      { artifacts: ["api", "web"], labels: { branch: "main" } },
      ["alice"],
      ["A1"],
      ["A1 build api", "A1 build web", "A1 loop"],
    ],
    [{ labels: { branch: "fix" } }, ["alice"], ["A2"], ["A2 build api", "A2 build web", "A2 loop"]],
    [{ labels: { branch: "fix" }, sessions: ["A1"] }, [], [], []],
    [{ sessions: ["B1"] }, ["bob"], ["B1"], ["B1 build web", "B1 loop"]],
    [{ upstreams: ["vagrant"], artifacts: ["web"] }, [], [], []],
    // Another workspace's.
    [{ artifacts: ["secret"] }, [], [], []],
    [{ labels: { branch: "main" }, artifacts: ["secret"] }, [], [], []],
  ])("%j selects in each list what it is about", async (filter, sources, sessions, operations) => {
    expect((await ask.listSources(filter)).items.map(({ developer }) => developer)).toEqual(sources);
    expect((await ask.listSessions(filter)).items.map(({ session }) => session)).toEqual(sessions);
    const found = (await ask.listOperations(filter)).items;
    expect(found.map(({ session, kind, subject }) => `${session} ${kind} ${subject}`.trim())).toEqual(operations);
  });

  it("knows as of an earlier position what was built by then", async () => {
    const filter = { artifacts: ["api"], at: at("build.started") };
    expect((await ask.listSources(filter)).items).toEqual([]);
    expect((await ask.listSessions(filter)).items).toEqual([]);
    expect((await ask.listOperations(filter)).items).toEqual([]);
    const built = { ...filter, at: at("build.failed") };
    expect((await ask.listSources(built)).items).toHaveLength(1);
    expect((await ask.listSessions(built)).items).toHaveLength(1);
    expect((await ask.listOperations(built)).items).toHaveLength(2);
  });
});

describe("BuildStats", () => {
  it("excludes builds that did not run from the percentiles", async () => {
    const { items } = await ask.buildStats({ group: ["artifact", "day"], developers: ["alice"] });
    expect(items).toMatchObject([
      {
        group: { artifact: "api", day: "2026-11-20" },
        count: 2n,
        failed: 1n,
        failure_rate: 0.5,
        p50_ms: 5_000,
        cached: 0n,
      },
      { group: { artifact: "web", day: "2026-11-20" }, count: 1n, failed: 0n, p50_ms: 2_000, cached: 1n },
    ]);
  });

  it("counts everything in one group without a grouping", async () => {
    expect((await ask.buildStats()).items).toMatchObject([{ group: {}, count: 3n, cached: 1n, unknown: 0n }]);
    expect((await ask.buildStats({ artifacts: ["none"] })).items).toMatchObject([{ count: 0n, failure_rate: 0 }]);
    await expect(ask.buildStats({ group: ["phase"] })).rejects.toMatchObject({ details: { field: "group" } });
  });
});

it("returns nothing of another workspace", async () => {
  const all = [
    ...(await ask.listSources()).items,
    ...(await ask.listSessions()).items,
    ...(await ask.listOperations()).items,
    ...(await ask.buildStats({ group: ["artifact", "developer", "source"] })).items,
  ];
  const text = JSON.stringify(all, (_key, value) => (typeof value === "bigint" ? value.toString() : value));
  expect(text).not.toMatch(/globex|carol|secret|C1/);
  await expect(ask.listSessions({ workspace: "" })).rejects.toMatchObject({ code: "invalid_argument" });
});

it("refuses calls without the services' key", async () => {
  using stranger = queryClient(query.address, "guess");
  await expect(stranger.listSources()).rejects.toMatchObject({ code: "unauthenticated" });
  await expect(stranger.readState({ source })).rejects.toMatchObject({ code: "unauthenticated" });
});

it.each<[string, (min_position: string) => Promise<{ readonly position: string }>]>([
  ["ReadState", async (min_position) => (await ask.readState({ source: known.source, min_position })).head ?? fail()],
  ["ListSources", (min_position) => ask.listSources({ min_position })],
  ["ListSessions", (min_position) => ask.listSessions({ min_position })],
  ["ListOperations", (min_position) => ask.listOperations({ min_position })],
  ["BuildStats", (min_position) => ask.buildStats({ min_position })],
])("%s waits for what is in the log and not yet in the tables", async (_, answer) => {
  const [written = 0] = await on.write([known.add({ kind: "source.checkpoint" })]);
  expect(await answer(on.endAt(written))).toMatchObject({ position: on.endAt(written) });
  expect(await ask.position()).toMatchObject({ position: on.endAt(written), log_position: on.endAt(written) });
  await expect(answer(on.at(written + 1))).rejects.toMatchObject({
    code: "position_future",
    details: { field: "min_position", latest: on.endAt(written) },
  });
  end = written;
});

function fail(): never {
  throw new Error("there is no answer");
}
