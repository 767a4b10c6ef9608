import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { queryClient } from "../../testing/client.ts";
import { migrated } from "../../testing/migrated.ts";
import { projectUntil } from "../../testing/run-projection.ts";
import { type Scenario, type SkaffoldSession, scenario } from "../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../testing/stage.ts";

const main = { branch: "main", commit: "a1", dirty: "false", host: "box" };
const fix = { branch: "fix", commit: "b2", dirty: "true" };

let on: Stage;
beforeAll(async () => {
  on = await stage();
});
afterAll(() => on[Symbol.asyncDispose]());

function loop(session: SkaffoldSession, outcome: "succeeded" | "failed" = "succeeded") {
  const began = session.loopStarted();
  session.build("web", "started");
  session.build("web", outcome);
  session.loopEnded(outcome);
  return began;
}

function begun(script: Scenario, id: string): SkaffoldSession {
  const session = script.session(id);
  session.started(main);
  session.configured();
  return session;
}

/** The tables of a log of its own that has the events, one or several of them in a batch. */
async function projected(script: Scenario, events = 1_000) {
  await using stack = new AsyncDisposableStack();
  const own = stack.use(await stage());
  const end = sequenceOf((await own.writeTogether(script.events, 1)).at(-1) ?? logStart);
  const fresh = stack.use(await freshDatabase(migrated));
  await projectUntil(fresh.url, own.log.reader, end, { limits: { events, bytes: 1_000_000 } });
  const database = stack.use(openDatabase({ url: fresh.url, connections: 1 }));
  const all = stack.move();
  return { database, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

async function labelsIn({ db }: Database, view: string, order = "start_position"): Promise<readonly unknown[]> {
  const rows = sql<{ labels: unknown }>`select labels from ${sql.table(view)} order by ${sql.raw(order)}`;
  return (await rows.execute(db)).rows.map(({ labels }) => labels);
}

describe.each([1, 1_000])("labels that change, in batches of %i", (events) => {
  it("are those of the loops from then on, and of all in them", async () => {
    const script = scenario();
    const session = begun(script, "A");
    loop(session);
    session.labelled(fix, loop(session, "failed"));
    loop(session, "failed");
    const detached = session.loopStarted();
    session.labelled({ branch: "", commit: "c3", dirty: "false" }, detached);
    session.build("web", "started");
    await using tables = await projected(script, events);
    const { database } = tables;
    const after = [main, { ...main, ...fix }, { ...main, ...fix }, { commit: "c3", dirty: "false", host: "box" }];
    expect(await labelsIn(database, "loops")).toEqual(after);
    expect(await labelsIn(database, "build_times")).toEqual(after);
    expect(await labelsIn(database, "loop_times")).toEqual(after.slice(0, 3));
    expect(await labelsIn(database, "failures", "position")).toEqual(after.slice(1, 3));
    expect(await labelsIn(database, "time_to_green")).toEqual(after.slice(1, 2));
    expect(await labelsIn(database, "sessions")).toEqual([main]);
  });

  it("may be recorded long after: of earlier loops they are not", async () => {
    const script = scenario();
    const session = begun(script, "A");
    const began = [loop(session), loop(session), loop(session), loop(session)];
    if (began[3]) session.labelled({ branch: "late" }, began[3]);
    if (began[1]) session.labelled({ branch: "fix" }, began[1]);
    await using tables = await projected(script, events);
    const branches = (await labelsIn(tables.database, "loop_times")).map((labels) => (labels as typeof main).branch);
    expect(branches).toEqual(["main", "fix", "fix", "late"]);
  });

  it("are another session's, after a new configuration, too, and go with it", async () => {
    const script = scenario();
    const first = begun(script, "A");
    first.labelled({ branch: "fix" }, first.loopStarted());
    first.configured();
    loop(first);
    first.ended();
    const second = begun(script, "B");
    loop(second);
    const removed = begun(script, "C");
    removed.labelled({ branch: "gone" }, loop(removed));
    script.add({ kind: "session.erased", session: "C", subject: "C" });
    await using tables = await projected(script, events);
    const branches = (await labelsIn(tables.database, "loops")).map((labels) => (labels as typeof main).branch);
    expect(branches).toEqual(["fix", "fix", "main"]);
    expect(await labelsIn(tables.database, "session_labels", "session")).toEqual([{ branch: "fix" }]);
    expect(await labelsIn(tables.database, "loop_labels", "session, runner")).toHaveLength(2);
  });
});

it("cost a query nothing that asks for none", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const plan = async (columns: string, view: string) => {
    const { rows } = await sql.raw(`explain select ${columns} from ${view}`).execute(database.db);
    return JSON.stringify(rows);
  };
  for (const view of ["build_times", "loop_times", "loops"]) {
    expect(await plan("source, outcome, duration_ms, loop", view)).not.toMatch(/loop_labels|sessions/);
    expect(await plan("labels", view)).toMatch(/loop_labels/);
  }
});

it("group and filter the figures, and stand in the lists, as of a position, too", async () => {
  const script = scenario();
  const session = begun(script, "A");
  loop(session);
  const second = loop(session, "failed");
  const reported = session.labelled(fix, second);
  loop(session);
  const positions = await on.write(script.events);
  await using query = await on.startQuery();
  await reaches(query, positions.at(-1) ?? 0);
  using ask = queryClient(query.address);

  const loops = await ask.stats("loops", { group: ["label.branch"] });
  expect(loops.items.map(({ group, figures }) => [group["label.branch"], figures.loops])).toEqual([
    ["fix", 2],
    ["main", 1],
  ]);
  const builds = await ask.buildStats({ workspace: "acme", group: ["label.branch"], labels: { dirty: "true" } });
  expect(builds.items).toMatchObject([{ group: { "label.branch": "fix" }, count: 2n, failed: 1n }]);
  expect((await ask.stats("failures", { labels: { branch: "main" } })).items).toMatchObject([
    { figures: { failures: 0 } },
  ]);
  expect((await ask.listSessions({ labels: { branch: "main" } })).items).toMatchObject([
    { session: "A", labels: main },
  ]);

  const at = positions[script.events.indexOf(reported)] ?? 0;
  const listed = await ask.listOperations({ sessions: ["A"], kinds: ["loop"] });
  const known = { labels: { ...main, ...fix }, labels_position: on.at(at) };
  expect(listed.items).toMatchObject([known, known, { labels: main, labels_position: "" }]);
  const before = await ask.listOperations({ sessions: ["A"], kinds: ["loop"], at: on.endAt(at - 1) });
  expect(before.items.map(({ labels }) => labels)).toEqual([main, main]);
  expect((await ask.listOperations({ sessions: ["A"], kinds: ["build"] })).items[0]?.labels).toEqual({});

  const labelled = async (labels: Readonly<Record<string, string>>, more: { readonly per_source?: number } = {}) =>
    (await ask.listOperations({ labels, ...more })).items.map(({ kind, loop }) => `${kind} ${loop}`);
  expect(await labelled({ branch: "main" })).toEqual(["build 1", "loop 1"]);
  expect(await labelled({ branch: "fix", host: "box" })).toEqual(["build 3", "loop 3", "build 2", "loop 2"]);
  expect(await labelled({ branch: "fix", host: "box" }, { per_source: 1 })).toEqual(["build 3"]);
  expect(await labelled({ branch: "fix", commit: "a1" })).toEqual([]);
  expect(await labelled({ branch: "none" })).toEqual([]);
});
