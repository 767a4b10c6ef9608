import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import type { Query } from "../../query.ts";
import { queryClient } from "../../testing/client.ts";
import { scenario, startedAt, timestamp } from "../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../testing/stage.ts";
import { vagrantSession } from "../../testing/vagrant-scenario.ts";

const alice = scenario();
const first = alice.session("A1");
/** A line of the output of a build. */
function print(text: string, loop: number, task = "Build", subtask = "web") {
  const operation = { kind: "", subject: "", runner: 1, loop };
  const value = { text: `${text}\n`, task, subtask, level: "standard" };
  alice.add({ session: "A1", channel: "v2", kind: "log.written", operation, detail: { $case: "text", value } });
}
first.started({ branch: "main" }, 1_000);
first.configured();
first.loopStarted(2_000);
first.build("web", "started");
print("Step 1/3 of 100% done_by_docker", 1);
print("src/Room.ts(41,7): error TS2322: no such thing", 1);
first.build("web", "failed", undefined, { error: { code: "BUILD_UNKNOWN", message: "exit status 2" } });
first.loopEnded("failed");
const labelled = first.loopStarted(3_000);
first.labelled({ branch: "fix/Umlaut" }, labelled);
first.build("api", "started");
print("nothing to see", 2, "Build", "api");
first.build("api", "succeeded");
first.loopEnded("succeeded");
first.loopStarted(4_000);

const bob = scenario(sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" }));
const oneShot = bob.session("B1");
oneShot.started({}, 2_500);
bob.add({ session: "B1", channel: "v1", kind: "deploy.started", operation: { kind: "deploy", runner: 1 } });
const deploy = { text: 'error: no matches for kind "Deploymint"\n', task: "Deploy", level: "standard" };
bob.add({ session: "B1", channel: "v2", kind: "log.written", detail: { $case: "text", value: deploy } });
bob.add({
  session: "B1",
  channel: "v1",
  kind: "deploy.failed",
  outcome: 2,
  operation: { kind: "deploy", runner: 1 },
  error: { code: "", message: "exit status 1" },
});
oneShot.ended("exit code 1", undefined, 1);

const dana = scenario(sourceName({ workspace: "machines", developer: "dana", project: "shop", upstream: "vagrant" }));
const server = vagrantSession("V1", dana);
server.began();
server.queued("J1", "up", { at: 1_000 });
server.started("J1", { at: 2_000 });
server.finished("J1", 3, { at: 3_000 });
server.queued("J2", "", { at: 4_000 });
server.started("J2", { at: 5_000 });

const carol = scenario(sourceName({ workspace: "globex", developer: "carol", project: "site", upstream: "skaffold" }));
const hers = carol.session("C1");
hers.started({ branch: "Deploymint" });
hers.configured();
hers.loopStarted();

let on: Stage;
let query: Query;
let ask: ReturnType<typeof queryClient>;

beforeAll(async () => {
  on = await stage();
  query = await on.startQuery();
  const ends = [];
  for (const { events } of [alice, bob]) ends.push((await on.write(events)).at(-1) ?? 0);
  await reaches(query, (await on.writeIn("machines", dana.events)).at(-1) ?? 0, "machines");
  await reaches(query, (await on.writeIn("globex", carol.events)).at(-1) ?? 0, "globex");
  await on.writeIn("many", []);
  await reaches(query, Math.max(...ends));
  ask = queryClient(query.address);
});

afterAll(async () => {
  ask[Symbol.dispose]();
  await query[Symbol.asyncDispose]();
  await on[Symbol.asyncDispose]();
});

type Found = Awaited<ReturnType<typeof ask.search>>;
const names = ({ items }: Found) =>
  items.map(({ kind, session, loop }) => (loop === 0 ? `${kind} ${session}` : `${kind} ${session}.${loop}`));

describe("Search", () => {
  it("lists loops and sessions of everybody in the workspace, the newest first, page by page", async () => {
    const all = ["loop A1.3", "loop A1.2", "session B1", "loop A1.1", "session A1"];
    expect(names(await ask.search())).toEqual(all);
    const pages: string[] = [];
    for (let page = "first"; page !== ""; ) {
      const answer = await ask.search("", { limit: 2, page: page === "first" ? "" : page });
      pages.push(...names(answer));
      page = answer.next_page;
    }
    expect(pages).toEqual(all);
  });

  it("says of each what the other lists say", async () => {
    const { items } = await ask.search("", { kinds: ["loop"] });
    const [running, good, failed] = items;
    expect(running).toMatchObject({ outcome: "", ended_at: undefined, end_position: "", artifacts: [] });
    expect(good).toMatchObject({ outcome: "succeeded", artifacts: ["api"], labels: { branch: "fix/Umlaut" } });
    expect(failed).toMatchObject({
      outcome: "failed",
      artifacts: ["web"],
      labels: { branch: "main" },
      cause: { reason: "type error", phase: "build", subject: "web", file: "src/Room.ts", line: 41 },
      started_at: timestamp(startedAt + 2_000),
    });
    const [session] = (await ask.search("", { kinds: ["session"], outcomes: ["failed"] })).items;
    expect(session).toMatchObject({
      session: "B1",
      exit_code: 1,
      cause: { text: expect.stringContaining("Deploymint") },
    });
  });

  it.each([
    ["a developer", { developers: ["bob"] }, ["session B1"]],
    ["an outcome", { outcomes: ["failed"] }, ["session B1", "loop A1.1"]],
    ["one of two artifacts", { artifacts: ["web", "api"] }, ["loop A1.2", "loop A1.1"]],
    ["a label", { labels: { branch: "fix/Umlaut" } }, ["loop A1.3", "loop A1.2"]],
    ["a time", { from: timestamp(startedAt + 2_400), to: timestamp(startedAt + 3_500) }, ["loop A1.2", "session B1"]],
    ["a source and a kind", { sources: ["alice/shop"], kinds: ["session"] }, ["session A1"]],
    ["a session", { sessions: ["B1"] }, ["session B1"]],
    ["an artifact that nobody has", { artifacts: ["nobody's"] }, []],
  ])("filters by %s", async (_what, filter, expected) => {
    expect(names(await ask.search("", filter))).toEqual(expected);
  });

  it("lists a job with a command as that", async () => {
    const { items } = await ask.search("", { workspace: "machines" });
    expect(items.map(({ kind, instance, subject, outcome }) => [kind, instance, subject, outcome])).toEqual([
      ["job", "J2", "J2", ""],
      ["command", "J1", "up", "failed"],
      ["session", "", "", ""],
    ]);
  });

  it("filters by reason", async () => {
    expect(names(await ask.search("", {}, ["type error"]))).toEqual(["loop A1.1"]);
  });

  it.each([
    ["a cause", "ERROR ts2322", "loop A1.1", { place: "cause" }],
    [
      "output",
      "100% done_by",
      "loop A1.1",
      { place: "output", text: "Step 1/3 of 100% done_by_docker", step: "build", subject: "web" },
    ],
    ["output outside of loops", "Deploymin", "session B1", { place: "cause" }],
    ["a file and line", "room.ts:41", "loop A1.1", { place: "name" }],
    ["an artifact", "api", "loop A1.2", { place: "artifact", text: "api" }],
    ["a label", "fix/um", "loop A1.3", { place: "label", text: "branch=fix/Umlaut" }],
  ])("finds a part of %s, with the line", async (_what, text, name, hit) => {
    const found = await ask.search(text);
    expect(names(found)[0]).toBe(name);
    expect(found.items[0]?.hit).toMatchObject(hit);
    expect(found).toMatchObject({ total: found.items.length, total_is_minimum: false });
  });

  it.each(["100_ done", "nothing to see", "no-such-thing"])("finds nothing where %s stands nowhere", async (text) => {
    expect(await ask.search(text)).toMatchObject({ items: [], total: 0 });
  });

  it("counts all matches on each page, and combines text and filters", async () => {
    const page = await ask.search("branch=main", { limit: 1 });
    expect([names(page), page.total]).toEqual([["loop A1.1"], 2]);
    const next = await ask.search("branch=main", { limit: 1, page: page.next_page });
    expect([names(next), next.total, next.next_page]).toEqual([["session A1"], 2, ""]);
    expect(names(await ask.search("branch=main", { kinds: ["session"] }))).toEqual(["session A1"]);
  });

  it.each([
    ["fewer than three letters in a row", () => ask.search("a b 1:"), "q"],
    ["a page of another list", () => ask.search("", { page: "b2xkZXIgdGhhbiA1" }), "page"],
  ])("refuses %s", async (_what, call, field) => {
    await expect(call()).rejects.toMatchObject({ code: "invalid_argument", details: { field } });
  });

  it.each([
    "2026-02-30T00:00:00.000000Z",
    "0000-01-01T00:00:00.000000Z",
    "2026-01-01T99:00:00.0Z",
    ["2026-01-01T00:00:00.0Z"],
  ])("refuses a page after %j, which Postgres would not read", async (at) => {
    const page = Buffer.from(JSON.stringify([at, 1, ""])).toString("base64url");
    await expect(ask.search("", { page })).rejects.toMatchObject({
      code: "invalid_argument",
      details: { field: "page" },
    });
  });

  it("pages in order through more matches than it counts", async () => {
    await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
    await sql`
      insert into history (source, workspace, developer, project, upstream, session, unit, kind, id, runner, loop, at, recorded_at, outcome,
        cause, reason, text, artifacts, labels, tags, start_position)
      select source, 'many', developer, project, upstream, session, n::text, kind, id, runner, loop, at + n * interval '1 ms', recorded_at, outcome,
        cause, reason, case when n <= 2500 then 'the older text' else 'the same text' end, artifacts, labels, '["many/outcome:failed"]'::jsonb || case when n = 7
          then '["many/artifact:rare"]'::jsonb else '[]' end, start_position
      from history cross join generate_series(1, 8000) n where session = 'A1' and unit = '1.1'`.execute(database.db);
    const ofMany = { workspace: "many", outcomes: ["failed"], limit: 50 };
    const found = await ask.search("same text", ofMany);
    expect([found.items.length, found.total, found.total_is_minimum]).toEqual([50, 2_000, true]);
    const next = await ask.search("same text", { ...ofMany, page: found.next_page });
    expect(next.items).toHaveLength(50);
    // Beyond the newest ones: too many to count, and one that a filter finds.
    const older = await ask.search("older text", ofMany);
    expect([older.items.length, older.total, older.total_is_minimum]).toEqual([50, 2_000, true]);
    expect(older.items[0]?.hit?.text).toBe("the older text");
    const rare = await ask.search("older text", { ...ofMany, artifacts: ["rare"] });
    expect([rare.items.length, rare.total, rare.total_is_minimum]).toEqual([1, 1, false]);
    expect(await ask.search("same text", { ...ofMany, artifacts: ["rare"] })).toMatchObject({ items: [], total: 0 });
    await sql`delete from history where workspace = 'many'`.execute(database.db);
  });

  it("finds all output with rows of text", async () => {
    await using own = await stage();
    await using textQuery = await own.startQuery({ textRows: true });
    await reaches(textQuery, (await own.write(alice.events)).at(-1) ?? 0);
    const asking = queryClient(textQuery.address);
    const found = await asking.search("nothing to see");
    expect(names(found)).toEqual(["loop A1.2"]);
    expect(names(await asking.search("nothing to see", { artifacts: ["api"] }))).toEqual(["loop A1.2"]);
    expect(found.items[0]?.hit).toMatchObject({ place: "output", text: "nothing to see" });
    asking[Symbol.dispose]();
  });

  it("keeps nothing of a session that is erased", async () => {
    alice.add({ kind: "session.erased", subject: "A1" });
    const mark = (await on.write(alice.events.slice(-1))).at(-1) ?? 0;
    await until(async () => names(await ask.search()).length === 1, { message: "the session to be gone" });
    await reaches(query, mark);
    expect(names(await ask.search("TS2322"))).toEqual([]);
    await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
    const { rows } = await sql<{ left: number }>`
      select (select count(*) from history where session = 'A1') + (select count(*) from failed_outputs where session = 'A1') as left`.execute(
      database.db,
    );
    expect(rows).toEqual([{ left: 0 }]);
  });
});
