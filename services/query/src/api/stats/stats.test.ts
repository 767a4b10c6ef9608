import { sourceName } from "@tapedeck/shared/source";
import { type Kysely, sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import type { Schema } from "../../db/schema.ts";
import type { Query } from "../../query.ts";
import { queryClient } from "../../testing/client.ts";
import { type Scenario, scenario, startedAt } from "../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../testing/stage.ts";
import { ulid, vagrantSession, vagrantShop } from "../../testing/vagrant-scenario.ts";

const minute = 60_000;
const hour = 60 * minute;

/**
 * Five loops: ready after 4 s; red for two loops by a build, of which the second begins at once; green; red by a check until
 * the end. The scenario begins on Friday 2026-11-20 at 9:00 UTC, and the last loop runs after Sunday's midnight in Berlin.
 */
function fiveLoops(on: Scenario, session: string): void {
  const one = on.session(session);
  one.started({ branch: session });
  one.configured();
  one.loopStarted(1_000);
  one.build("web", "started", 1_000);
  one.build("web", "succeeded", 4_000);
  one.loopEnded("succeeded", 5_000);
  one.loopStarted(minute);
  one.build("web", "started", minute);
  one.build("web", "failed", minute + 2_000);
  one.loopEnded("failed", minute + 2_000);
  one.loopStarted(minute + 2_100);
  one.build("web", "started", minute + 2_100);
  one.build("web", "failed", minute + 3_100);
  one.loopEnded("failed", minute + 3_100);
  one.loopStarted(2 * minute);
  one.build("web", "started", 2 * minute);
  one.build("web", "succeeded", 2 * minute + 1_000);
  one.loopEnded("succeeded", 2 * minute + 2_000);
  one.loopStarted(62 * hour + 30 * minute);
  one.phase("deploy", "started", 62 * hour + 30 * minute);
  one.phase("check", "started", 62 * hour + 30 * minute + 1_000);
  one.phase("check", "failed", 62 * hour + 30 * minute + 9_000);
  one.loopEnded("failed", 62 * hour + 30 * minute + 10_000);
}

const alice = scenario();
fiveLoops(alice, "A1");
const bob = scenario(sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" }));
const his = bob.session("B1");
his.started({ branch: "main" });
his.configured();
his.loopStarted(0);
his.loopEnded("succeeded", 8_000);
const carol = scenario(sourceName({ workspace: "globex", developer: "carol", project: "site", upstream: "skaffold" }));
fiveLoops(carol, "C1");
const vagrant = scenario(vagrantShop);
const server = vagrantSession("V1", vagrant);
server.began();
for (const [index, code] of [undefined, 127].entries()) {
  server.queued(ulid(index), "up", { at: 0 });
  server.started(ulid(index), { at: 1_000 });
  server.finished(ulid(index), code, { at: 2_000 + index * 1_000 });
}

/** When a clock that was never set is. */
const neverSet = 5_000 - startedAt;
const dora = scenario(sourceName({ workspace: "initech", developer: "dora", project: "shop", upstream: "skaffold" }));
const hers = dora.session("D1");
hers.started({ branch: "main" });
hers.configured();
for (const start of [0, neverSet]) {
  hers.loopStarted(start);
  hers.build("web", "started", start);
  hers.build("web", "succeeded", 4_000);
  hers.loopEnded("succeeded", 5_000);
}
const box = scenario(sourceName({ workspace: "initech", developer: "dora", project: "shop", upstream: "vagrant" }));
const machine = vagrantSession("W1", box);
machine.began();
for (const [index, end] of [3_000, neverSet].entries()) {
  machine.queued(ulid(index), "up", { at: 0 });
  machine.started(ulid(index), { at: 1_000 });
  machine.finished(ulid(index), undefined, { at: end });
}

let on: Stage;
let query: Query;
let ask: ReturnType<typeof queryClient>;
let db: Kysely<Schema>;
const cleanup = new AsyncDisposableStack();

beforeAll(async () => {
  on = cleanup.use(await stage());
  query = cleanup.use(await on.startQuery());
  for (const { events } of [alice, bob, carol, dora, box, vagrant]) {
    const [workspace = ""] = events[0]?.source.split("/") ?? [];
    await reaches(query, (await on.writeIn(workspace, events)).at(-1) ?? 0, workspace);
  }
  ask = cleanup.use(queryClient(query.address));
  db = cleanup.use(openDatabase({ url: on.databaseUrl, connections: 1 })).db;
});
afterAll(() => cleanup.disposeAsync());

const figures = async (...call: Parameters<typeof ask.stats>) =>
  (await ask.stats(...call)).items.map(({ group, figures }) => ({ ...group, ...figures }));

it("count what is of some sources, and loops in which some artifacts were built", async () => {
  const loopsOf = async (of: object) => figures("loops", { group: ["developer"], ...of });
  expect(await loopsOf({ artifacts: ["web"] })).toMatchObject([{ developer: "alice", loops: 4 }]);
  expect((await loopsOf({ artifacts: ["api"] })).map(({ loops }) => loops)).toEqual([]);
  expect(await loopsOf({ sources: ["bob/shop"] })).toMatchObject([{ developer: "bob", loops: 1 }]);
  expect(await figures("failures", { group: [], sources: ["bob/shop/skaffold"] })).toMatchObject([{ failures: 0 }]);
});

it.each([
  ["loops", "loops", "D1"],
  ["failures", "failures", "A1"],
  ["green", "red", "A1"],
  ["flakes", "builds", "A1"],
  ["commands", "runs", "W1"],
])("%s are counted of some sessions and upstreams", async (about, figure, session) => {
  const workspace = ({ A: "acme", D: "initech", W: "initech" } as Record<string, string>)[session.charAt(0)] ?? "";
  const counted = async (of: object) => (await figures(about, { workspace, group: [], ...of }))[0]?.[figure] ?? 0;
  const upstream = session === "W1" ? "vagrant" : "skaffold";
  const own = await counted({ sessions: [session], upstreams: [upstream, "rkt"] });
  expect(own).toBeGreaterThan(0);
  expect(own).toBe(await counted({ sources: [`${session === "A1" ? "alice" : "dora"}/shop/${upstream}`] }));
  expect(await counted({ sessions: ["B1"] })).toBe(0);
  const other = upstream === "vagrant" ? "skaffold" : "vagrant";
  expect(await counted({ sessions: [session], upstreams: [other] })).toBe(0);
});

it("builds are counted of some sessions and upstreams", async () => {
  const count = async (of: object) => Number((await ask.buildStats(of)).items[0]?.count);
  expect(await count({ sessions: ["A1"], upstreams: ["skaffold"] })).toBe(4);
  expect(await count({ sessions: ["B1"] })).toBe(0);
  expect(await count({ upstreams: ["vagrant"] })).toBe(0);
});

describe("loops", () => {
  it("are counted with their waits: an overtaken loop is one that the next change did not wait for", async () => {
    expect(await figures("loops", { group: ["developer"] })).toEqual([
      {
        developer: "alice",
        loops: 5,
        failed: 3,
        overtaken: 1,
        waited_ms: 4_000 + 2_000 + 1_000 + 2_000 + 10_000,
        sync_ms: 0,
        build_ms: 7_000,
        test_ms: 0,
        render_ms: 0,
        deploy_ms: 2_000,
        check_ms: 8_000,
        other_ms: 2_000,
        ready_p50_ms: 3_000,
        ready_p90_ms: 3_800,
        ready_p99_ms: 3_980,
        untimed: 0,
      },
      {
        developer: "bob",
        loops: 1,
        failed: 0,
        overtaken: 0,
        waited_ms: 8_000,
        sync_ms: 0,
        build_ms: 0,
        test_ms: 0,
        render_ms: 0,
        deploy_ms: 0,
        check_ms: 0,
        other_ms: 8_000,
        ready_p50_ms: 8_000,
        ready_p90_ms: 8_000,
        ready_p99_ms: 8_000,
        untimed: 0,
      },
    ]);
  });

  it("fall into the days and weeks of a time zone, and into hours by the moment", async () => {
    const loops = async (group: string, zone = "") =>
      Object.fromEntries(
        (await figures("loops", { group: [group], zone, developers: ["alice"] })).map((row) => [
          (row as Record<string, unknown>)[group],
          row.loops,
        ]),
      );
    expect(await loops("day")).toEqual({ "2026-11-20": 4, "2026-11-22": 1 });
    expect(await loops("day", "Europe/Berlin")).toEqual({ "2026-11-20": 4, "2026-11-23": 1 });
    expect(await loops("week")).toEqual({ "2026-11-16": 5 });
    expect(await loops("week", "Europe/Berlin")).toEqual({ "2026-11-16": 4, "2026-11-23": 1 });
    expect(await loops("hour", "Asia/Kolkata")).toEqual({ "2026-11-20T08:30:00Z": 4, "2026-11-22T23:30:00Z": 1 });
  });

  it("are grouped and filtered by labels", async () => {
    const rows = await figures("loops", { group: ["label.branch", "label.commit"] });
    expect(rows).toMatchObject([
      { "label.branch": "A1", "label.commit": "", loops: 5 },
      { "label.branch": "main", "label.commit": "", loops: 1 },
    ]);
    expect(await figures("loops", { labels: { branch: "main" } })).toMatchObject([{ loops: 1 }]);
    expect(await figures("loops", { group: ["label.bra'nch"], labels: { branch: "main" } })).toMatchObject([
      { "label.bra'nch": "", loops: 1 },
    ]);
  });
});

it("failures count once each, by what failed first", async () => {
  expect(await figures("failures", { group: ["phase", "artifact", "errorCode"] })).toEqual([
    { phase: "build", artifact: "web", errorCode: "BUILD_UNKNOWN", failures: 2, developers: 1 },
    { phase: "check", artifact: "", errorCode: "BUILD_UNKNOWN", failures: 1, developers: 1 },
    { phase: "command", artifact: "", errorCode: "127", failures: 1, developers: 1 },
  ]);
  expect(await figures("failures", { artifacts: ["web"] })).toMatchObject([{ failures: 2 }]);
});

it("green: the time from the first failed loop to the next good one, and what was tried in between", async () => {
  expect(await figures("green", { group: ["developer", "phase"] })).toEqual([
    {
      developer: "alice",
      phase: "build",
      red: 1,
      still_red: 0,
      red_p50_ms: minute,
      red_p90_ms: minute,
      loops_between: 1,
    },
    { developer: "alice", phase: "check", red: 1, still_red: 1, loops_between: 0 },
  ]);
});

it("commands", async () => {
  expect(await figures("commands", { group: ["command", "machine"] })).toEqual([
    { command: "up", machine: "", runs: 2, failed: 1, p50_ms: 1_500, p90_ms: 1_900, untimed: 0 },
  ]);
  // A failed command is no loop, and counts among the failures by its own kind.
  expect(await figures("failures", { group: ["phase"], developers: ["alice"] })).toMatchObject([
    { phase: "build", failures: 2 },
    { phase: "check", failures: 1 },
    { phase: "command", failures: 1 },
  ]);
});

it("an impossible duration is counted, and in no percentile", async () => {
  const workspace = "initech";
  expect(await figures("loops", { workspace })).toMatchObject([
    { loops: 2, untimed: 1, waited_ms: 5_000, ready_p50_ms: 5_000, ready_p99_ms: 5_000 },
  ]);
  expect((await ask.buildStats({ workspace })).items).toMatchObject([
    { count: 2n, untimed: 1n, p50_ms: 4_000, p99_ms: 4_000 },
  ]);
  expect(await figures("commands", { workspace })).toMatchObject([
    { runs: 2, untimed: 1, p50_ms: 2_000, p90_ms: 2_000 },
  ]);
});

it("the rows behind a figure are had by their loops and times", async () => {
  const group = ["loop", "time"];
  const began = (ms: number) => new Date(startedAt + ms).toISOString();
  expect(await figures("loops", { group, developers: ["alice"] })).toMatchObject([
    { loop: "A1.1.1", time: began(1_000), waited_ms: 4_000 },
    { loop: "A1.1.2", time: began(minute), failed: 1, overtaken: 1 },
    { loop: "A1.1.3", failed: 1, overtaken: 0 },
    { loop: "A1.1.4", failed: 0 },
    { loop: "A1.1.5", time: began(62 * hour + 30 * minute) },
  ]);
  expect(await figures("green", { group })).toMatchObject([
    { loop: "A1.1.2", time: began(minute + 2_000), red_p50_ms: minute },
    { loop: "A1.1.5", still_red: 1 },
  ]);
  const failures = await figures("failures", { group: ["loop", "phase"] });
  expect(failures).toMatchObject([
    { loop: "A1.1.2", phase: "build" },
    { loop: "A1.1.3", phase: "build" },
    { loop: "A1.1.5", phase: "check" },
    { loop: "V1.0.0", phase: "command" },
  ]);
  expect(await figures("flakes", { group: ["loop"], artifacts: ["web"], developers: ["alice"] })).toMatchObject([
    { loop: "A1.1.1", flakes: 0 },
    { loop: "A1.1.2", flakes: 0 },
    { loop: "A1.1.3", flakes: 1 },
    { loop: "A1.1.4", flakes: 0 },
  ]);
  const builds = (await ask.buildStats({ workspace: "acme", group: ["loop", "time"] })).items;
  expect(builds.map(({ group }) => group)).toContainEqual({ loop: "A1.1.1", time: began(1_000) });
});

it("every figure is what SQL's view says", async () => {
  const range = `between '2026-11-20 09:00:30+00' and '2026-11-20 12:00:00+00'`;
  const request = {
    from: { seconds: BigInt(startedAt / 1_000) + 30n },
    to: { seconds: BigInt(startedAt / 1_000) + 10_800n },
  };
  const bySql = async (statement: string) => (await sql.raw(statement).execute(db)).rows;
  expect(await figures("loops", { ...request, group: ["developer"] })).toEqual(
    await bySql(`select developer, count(*) as loops, count(*) filter (where outcome = 'failed') as failed,
      count(*) filter (where overtaken) as overtaken, sum(duration_ms)::bigint as waited_ms,
      sum(sync_ms)::bigint as sync_ms, sum(build_ms)::bigint as build_ms, sum(test_ms)::bigint as test_ms,
      sum(render_ms)::bigint as render_ms, sum(deploy_ms)::bigint as deploy_ms, sum(check_ms)::bigint as check_ms,
      sum(other_ms)::bigint as other_ms, percentile_cont(0.5) within group (order by ready_ms) as ready_p50_ms,
      percentile_cont(0.9) within group (order by ready_ms) as ready_p90_ms,
      percentile_cont(0.99) within group (order by ready_ms) as ready_p99_ms,
      count(*) filter (where outcome <> 'unknown' and duration_ms is null) as untimed
      from tapedeck.loop_times where workspace = 'acme' and started_at ${range} group by 1 order by 1`),
  );
  expect(await figures("failures", { ...request, group: ["error"] })).toEqual(
    await bySql(`select error, count(*) as failures, count(distinct developer) as developers
      from tapedeck.failures where workspace = 'acme' and failed_at ${range} group by 1 order by 1`),
  );
  expect(await figures("green", request)).toEqual(
    await bySql(`select count(*) as red, count(*) filter (where green_at is null) as still_red,
      percentile_cont(0.5) within group (order by red_ms) as red_p50_ms,
      percentile_cont(0.9) within group (order by red_ms) as red_p90_ms, sum(loops_between)::bigint as loops_between
      from tapedeck.time_to_green where workspace = 'acme' and failed_at ${range}`),
  );
  expect(await figures("commands", { group: ["command"] })).toEqual(
    await bySql(`select command, count(*) as runs, count(*) filter (where outcome = 'failed') as failed,
      percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
      percentile_cont(0.9) within group (order by duration_ms) as p90_ms,
      count(*) filter (where outcome <> 'unknown' and duration_ms is null) as untimed
      from tapedeck.vagrant_command_times where workspace = 'acme' group by 1`),
  );
  const days = await bySql(`select day::text, loops, failed, overtaken, waited_ms from tapedeck.waiting_by_developer
    where workspace = 'acme' and developer = 'alice' order by 1`);
  expect(await figures("loops", { group: ["day"], developers: ["alice"] })).toMatchObject(days);
});

it("a flake is a failed build that the next one did not repeat", async () => {
  const { rows } = await sql`select artifact, builds, failed, flakes, developers from tapedeck.flaky_artifacts
    where workspace = 'acme'`.execute(db);
  expect(rows).toEqual([{ artifact: "web", builds: 4, failed: 2, flakes: 1, developers: 1 }]);
  expect(await figures("flakes", { group: ["artifact"] })).toEqual(rows);
  expect(await figures("flakes", { group: ["artifact"], from: { seconds: BigInt(startedAt / 1_000) + 63n } })).toEqual([
    { artifact: "web", builds: 1, failed: 0, flakes: 0, developers: 0 },
  ]);
  expect(await figures("flakes", { developers: ["bob"] })).toEqual([
    { builds: 0, failed: 0, flakes: 0, developers: 0 },
  ]);
  const slow = await sql`select artifact, builds, p50_ms, built_ms from tapedeck.slowest_artifacts
    where workspace = 'acme'`.execute(db);
  expect(slow.rows).toEqual([{ artifact: "web", builds: 4, p50_ms: 1_500, built_ms: 7_000 }]);
});

it.each([
  ["loops", { group: ["artifact"] }, "group"],
  ["loops", { group: ["constructor"] }, "group"],
  ["commands", { artifacts: ["web"] }, "artifact"],
  ["loops", { group: ["day"], zone: "Europe/Atlantis" }, "zone"],
  ["loops", { group: ["day"], zone: "+02:00" }, "zone"],
  ["phases", {}, "about"],
] as const)("%s of %j are refused", async (about, of, field) => {
  await expect(ask.stats(about, of as object)).rejects.toMatchObject({ code: "invalid_argument", details: { field } });
});
