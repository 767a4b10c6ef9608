import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { searched, searchSeed } from "@tapedeck/shared/testing/searches";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { rebuild } from "../../projecting/rebuild.ts";
import { rebuildWorkspace } from "../../projecting/rebuild-workspace.ts";
import { migrated } from "../../testing/migrated.ts";
import { randomEvents, seeded } from "../../testing/random-scenario.ts";
import { projectUntil } from "../../testing/run-projection.ts";
import { scenario } from "../../testing/scenario.ts";
import { reaches, stage } from "../../testing/stage.ts";
import { streams } from "../../testing/streams.ts";
import { differencesOf, rows } from "../../testing/tables.ts";
import { views } from "../views.ts";
import { allProjects } from "./totals.ts";

const key = "workspace, project, kind, outcome, phase";

async function totalsIn(url: string) {
  await using database = openDatabase({ url, connections: 1 });
  return { operation_totals: await rows(database, "operation_totals", key) };
}

/** "build succeeded 2": what is counted, by kind and outcome or phase. */
async function counts({ db }: Database, project = "shop"): Promise<readonly string[]> {
  const { rows: found } = await sql<{ text: string }>`
    select concat_ws(' ', kind, nullif(outcome, ''), nullif(phase, ''), count) as text from operation_totals
    where project = ${project} order by ${sql.raw(key)}`.execute(db);
  return found.map(({ text }) => text);
}

it("an operation that ended is counted once, with its duration, and what loops waited for", async () => {
  await using on = await stage();
  const script = scenario();
  const session = script.session("s1");
  session.started({}, 0);
  session.configured(1);
  session.loopStarted(1_000);
  session.build("web", "started", 1_000);
  session.build("web", "succeeded", 4_000);
  session.cached("api", 4_000);
  session.phase("deploy", "started", 4_000);
  session.phase("deploy", "succeeded", 4_500);
  session.loopEnded("succeeded", 5_500);
  // Reported once more, which does not count again.
  session.loopEnded("succeeded", 5_600);
  session.build("web", "started", 6_000, { injected: true });
  session.build("web", "succeeded", 6_100, { injected: true });
  session.loopStarted(10_000);
  session.build("web", "started", 10_000);
  session.ended("gone", 11_000);
  // Late: it was thought that its end would never be known.
  session.build("web", "failed", 12_000);
  await projectUntil(on.databaseUrl, on.log.reader, (await on.write(script.events)).at(-1) ?? 0);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  expect(await counts(database)).toEqual([
    "build cached 1",
    "build failed 1",
    "build succeeded 1",
    "build unknown 1",
    "deploy succeeded 1",
    "loop succeeded 1",
    "loop unknown 1",
    "wait build 1",
    "wait deploy 1",
    "wait other 1",
  ]);
  expect(await counts(database, allProjects)).toEqual(await counts(database));
  const { operation_totals: found } = await totalsIn(on.databaseUrl);
  const of = (kind: string, what: string) =>
    found.find((row) => row.kind === kind && (row.outcome === what || row.phase === what));
  expect(of("build", "cached")).toMatchObject({ count: 1, timed: 0, sum_ms: 0, le_600000: 0 });
  const build = { count: 1, timed: 1, sum_ms: 3_000, le_500: 0, le_2000: 0, le_5000: 1, le_600000: 1 };
  expect(of("build", "succeeded")).toMatchObject(build);
  expect(of("wait", "build")).toMatchObject(build);
  expect(of("wait", "deploy")).toMatchObject({ sum_ms: 500, le_500: 1 });
  expect(of("loop", "succeeded")).toMatchObject({ sum_ms: 4_500, le_2000: 0, le_5000: 1 });
});

it("the waits are those known at the loop's end, also where an end came late in the same batch", async () => {
  await using on = await stage();
  const script = scenario();
  const session = script.session("s1");
  session.started({}, 0);
  session.configured(1);
  session.loopStarted(1_000);
  session.phase("deploy", "started", 2_000);
  session.loopEnded("succeeded", 6_000);
  session.phase("deploy", "succeeded", 3_000);
  const end = (await on.write(script.events)).at(-1) ?? 0;
  await projectUntil(on.databaseUrl, on.log.reader, end);
  await using other = await freshDatabase(migrated);
  await projectUntil(other.url, on.log.reader, end, { limits: { events: 1, bytes: 1_000_000 } });
  for (const url of [on.databaseUrl, other.url]) {
    const { operation_totals: found } = await totalsIn(url);
    expect(found).toContainEqual(expect.objectContaining({ project: "shop", phase: "deploy", sum_ms: 4_000 }));
  }
});

it(`the totals are the same however the log is cut into batches (seed ${searchSeed})`, async () => {
  await using on = await stage();
  const random = seeded(searchSeed);
  // What an erased session did is counted where its events came before the mark.
  const events = randomEvents(random, searched({ short: 3_000, long: 9_000 }));
  const kept = events.filter(({ kind }) => kind !== "session.erased");
  const end = sequenceOf((await on.writeTogether(kept, 5)).at(-1) ?? endOf(0));
  await projectUntil(on.databaseUrl, on.log.reader, end);
  const expected = await totalsIn(on.databaseUrl);
  expect(expected.operation_totals.length).toBeGreaterThan(15);
  await using other = await freshDatabase(migrated);
  await projectUntil(other.url, on.log.reader, end, { limits: { events: 1 + random(40), bytes: 1_000_000 } });
  expect(differencesOf(await totalsIn(other.url), expected)).toEqual([]);
});

it("the totals never fall, by erasures nor by rebuilds, and go with a project's last source", async ({ signal }) => {
  await using on = await stage();
  await using logs = await streams(on, ["acme"]);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await using query = await on.startQuery();
  const script = scenario();
  for (const id of ["s1", "s2"]) {
    const session = script.session(id);
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    session.build("web", "succeeded");
    session.loopEnded("succeeded");
    session.ended();
  }
  const seqs = await on.write(script.events);
  await reaches(query, seqs.at(-1) ?? 0);
  const all = await counts(database);
  expect(all).toContain("build succeeded 2");

  const erased = { session: "s1", subject: "s1", kind: "session.erased" };
  await reaches(query, (await on.write([script.add(erased)])).at(-1) ?? 0);
  expect(await counts(database)).toEqual(all);
  const { databaseUrl } = on;
  const options = { databaseUrl, logs: logs.logs, views: views({ textRows: false }), signal };
  expect(await rebuildWorkspace({ ...options, workspace: "acme" })).toBe(true);
  expect(await counts(database)).toEqual(all);
  expect(await rebuild(options)).toBe(true);
  expect(await counts(database)).toEqual(all);

  // Rows that are missing come from the log, which has one of the sessions.
  await sql`delete from operation_totals where kind = 'build'`.execute(database.db);
  expect(await rebuildWorkspace({ ...options, workspace: "acme" })).toBe(true);
  expect(await counts(database)).toEqual(all.map((text) => text.replace("build succeeded 2", "build succeeded 1")));

  await reaches(query, (await on.write([script.add({ kind: "source.erased" })])).at(-1) ?? 0);
  expect(await counts(database)).toEqual([]);
  expect(await counts(database, allProjects)).toContain("build succeeded 1");
});
