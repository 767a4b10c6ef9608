import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { requestTablesEnd } from "@tapedeck/shared/log/tables-end";
import { WorkspaceStore, withEpochs } from "@tapedeck/shared/log/workspaces/workspace-store";
import { sourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "./db/database.ts";
import { type Lane, Pipelines } from "./db/pipelines.ts";
import { deleteWorkspace, forgetWorkspace } from "./projecting/forget/workspace.ts";
import { rebuild } from "./projecting/rebuild.ts";
import { rebuildWorkspace } from "./projecting/rebuild-workspace.ts";
import { queryClient, readiness } from "./testing/client.ts";
import { migrated } from "./testing/migrated.ts";
import { randomEvents, seeded } from "./testing/random-scenario.ts";
import { type Scenario, scenario, write, writeTogether } from "./testing/scenario.ts";
import { reaches, stage } from "./testing/stage.ts";
import { projectAlone, streams } from "./testing/streams.ts";
import { contents, differencesOf } from "./testing/tables.ts";
import { rowsOf } from "./testing/workspace-rows.ts";
import { views } from "./views/views.ts";

// Each workspace has a stream here: positions are equal, epochs are not.

const both = ["acme", "globex"];

const sourceOf = (workspace: string) =>
  sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });

/** A build that failed; session and ids are the workspace's. */
function build(workspace: string): Scenario {
  const script = scenario(sourceOf(workspace));
  const session = script.session(`01${workspace.toUpperCase()}`);
  session.started();
  session.configured();
  session.loopStarted();
  session.build("web", "started");
  session.build("web", "failed");
  return script;
}

it("two workspaces have equal positions, and answers about each are of its own log", async () => {
  await using on = await stage();
  await using logs = await streams(on, both);
  await using query = await logs.startQuery();
  let last = 0;
  for (const workspace of both) last = (await write(logs.log(workspace), build(workspace).events)).at(-1) ?? 0;
  for (const workspace of both) await reaches(query, last, workspace);
  using ask = queryClient(query.address);
  const positions = new Map<string, string>();
  for (const workspace of both) {
    const { epoch } = logs.log(workspace);
    const { position, items } = await ask.listOperations({ workspace, kinds: ["build"] });
    expect(parsePosition(position)).toMatchObject({ epoch });
    expect(items).toMatchObject([{ source: sourceOf(workspace), outcome: "failed" }]);
    expect(items.map(({ start_position }) => parsePosition(start_position)?.epoch)).toEqual([epoch]);
    const range = { after: position.replace(/^.*-/, "1000-"), until: position, newest: true };
    const found = await ask.findEvents({ ...range, filter: { workspace, limit: 1_000 } });
    expect(found.positions.map((one) => sequenceOf(parsePosition(one)?.offset ?? logStart))).toEqual(
      Array.from({ length: last }, (_, index) => index + 1),
    );
    positions.set(workspace, position);
  }
  const [acme = "", globex = ""] = positions.values();
  expect(acme.split("-")[0]).toBe(globex.split("-")[0]);
  await expect(ask.listSources({ workspace: "acme", min_position: globex })).rejects.toMatchObject({
    code: "position_foreign",
  });
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const { rows } = await sql<{ workspace: string; text: string; own: boolean }>`
    select workspace, start_position_text as text, start_position_text = position_text(start_position, workspace) as own
    from build_times order by workspace`.execute(database.db);
  expect(rows.map(({ workspace, text, own }) => [workspace, text.split("-")[1], own])).toEqual(
    both.map((workspace) => [workspace, logs.log(workspace).epoch, true]),
  );
});

it("a request for the current position waits until the tables have all that the log has", async () => {
  await using on = await stage();
  await using logs = await streams(on, both);
  await using query = await logs.startQuery();
  using ask = queryClient(query.address);
  for (const workspace of both) {
    const { events } = build(workspace);
    for (const event of events) {
      const [written = 0] = await write(logs.log(workspace), [event]);
      const { position, log_position: end } = await ask.position({ workspace, current: true });
      expect(position).toBe(end);
      expect(sequenceOf(parsePosition(position)?.offset ?? logStart)).toBe(written);
    }
  }
});

it("an error that stops one workspace's tables stops no other's, and they go on when it is mended", async () => {
  await using on = await stage();
  await using logs = await streams(on, both);
  await using query = await logs.startQuery();
  using ask = queryClient(query.address);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const scripts = new Map(both.map((workspace) => [workspace, build(workspace)]));
  let first = 0;
  for (const [workspace, { events }] of scripts) first = (await write(logs.log(workspace), events)).at(-1) ?? 0;
  for (const workspace of both) await reaches(query, first, workspace);

  // No fault of an event, so nothing is set aside.
  await sql`
    create function refuse() returns trigger language plpgsql as $$ begin
      if new.workspace = 'globex' then raise exception 'no space is left' using errcode = 'disk_full'; end if;
      return new;
    end $$`.execute(database.db);
  await sql`create trigger refuse before insert or update on sources for each row execute function refuse()`.execute(
    database.db,
  );
  const add = (workspace: string) => scripts.get(workspace)?.add({ kind: "source.checkpoint" });
  const end =
    (
      await write(
        logs.log("globex"),
        [add("globex")].flatMap((event) => event ?? []),
      )
    ).at(-1) ?? 0;
  const isNamed = async () => {
    const answer = await (await fetch(`http://${query.addresses.health}/readyz`)).text();
    return answer.includes("workspace globex is not projected: no space is left");
  };
  await until(isNamed, { message: "the readiness to name the workspace" });
  for (let times = 0; times < 20; times += 1) {
    const [seq = 0] = await write(
      logs.log("acme"),
      [add("acme")].flatMap((event) => event ?? []),
    );
    await reaches(query, seq, "acme");
    expect(sequenceOf(query.positionOf("globex"))).toBe(first);
    // The end that is reported is that of the tables of the workspace alone.
    const ends = both.map((workspace) => requestTablesEnd(logs.nats, workspace, 10_000));
    expect(await Promise.all(ends)).toMatchObject([{ seq }, { seq: first, epoch: logs.log("globex").epoch }]);
  }
  expect((await readiness(query.addresses.health)).status).toBe(200);
  expect((await ask.listSources({ workspace: "acme" })).items).toHaveLength(1);

  await sql`drop trigger refuse on sources`.execute(database.db);
  await reaches(query, end, "globex");
});

it("tables of another log are refused for their workspace alone", async () => {
  await using on = await stage();
  await using logs = await streams(on, both);
  let last = 0;
  for (const workspace of both) last = (await write(logs.log(workspace), build(workspace).events)).at(-1) ?? 0;
  {
    await using query = await logs.startQuery();
    for (const workspace of both) await reaches(query, last, workspace);
  }
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await database.db.updateTable("checkpoint").set({ epoch: "other1" }).where("workspace", "=", "globex").execute();
  await using query = await logs.startQuery();
  using ask = queryClient(query.address);
  const sentence = expect.stringContaining("the database follows another log of workspace globex (other1");
  const readsIt = async () =>
    (await (await fetch(`http://${query.addresses.health}/readyz`)).text()).includes("other1");
  await until(readsIt, { message: "the readiness to name the workspace" });
  await expect(ask.listSources({ workspace: "globex" })).rejects.toMatchObject({
    code: "not_ready",
    message: sentence,
  });
  const [seq = 0] = await write(logs.log("acme"), [
    scenario(sourceName({ workspace: "acme", developer: "bob", project: "site", upstream: "skaffold" })).add({
      kind: "source.added",
    }),
  ]);
  await reaches(query, seq, "acme");
  expect((await ask.listSources({ workspace: "acme" })).items).toHaveLength(2);
  expect(await readiness(query.addresses.health)).toMatchObject({
    status: 200,
    details: { waiting: [{ workspace: "globex", reason: sentence }] },
  });
});

it("the tables of one workspace are rebuilt while both are written", async ({ signal }) => {
  await using on = await stage();
  await using logs = await streams(on, both);
  await using query = await logs.startQuery();
  const events = Map.groupBy(randomEvents(seeded(8), 1_200), ({ source }) => source.split("/")[0] ?? "");
  const writeSome = async (count: number) => {
    for (const workspace of both)
      await writeTogether(logs.log(workspace), events.get(workspace)?.splice(0, count) ?? [], 5);
  };
  const ends = () => Promise.all(both.map(async (workspace) => (await logs.log(workspace).reader.bounds()).lastOffset));
  const allReached = async () => {
    for (const [index, end] of (await ends()).entries()) await reaches(query, sequenceOf(end), both[index] ?? "");
  };
  await writeSome(250);
  await allReached();
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const spoiled = await sql<{ id: string }>`
    update operations set error = 'spoiled' where kind = 'loop' returning id`.execute(database.db);
  expect(spoiled.rows.length).toBeGreaterThan(10);
  const rebuilding = rebuildWorkspace({
    databaseUrl: on.databaseUrl,
    logs: logs.logs,
    workspace: "acme",
    views: views({ textRows: false }),
    limits: { events: 100, bytes: 1_000_000 },
    signal,
  });
  while ((events.get("acme")?.length ?? 0) > 0) await writeSome(20);
  expect(await rebuilding).toBe(true);
  await allReached();

  await using straight = await freshDatabase(migrated);
  await projectAlone(straight.url, new Map(both.map((workspace) => [workspace, logs.log(workspace)])));
  await using expected = openDatabase({ url: straight.url, connections: 1 });
  const isOf = (workspace: string, rows: readonly unknown[]) =>
    rows.filter((row) => JSON.stringify(row).includes(`${workspace}/`));
  const [found, fromLog] = [await contents(on.databaseUrl), await contents(straight.url)];
  // Events of a session that was erased meanwhile are not given to those who follow live, so groups and blocks may differ.
  const { event_groups: _, event_blocks: __, event_positions: ___, build_times: ____, ...tables } = fromLog;
  for (const table of Object.keys(tables)) {
    const [own, there] = [found, fromLog].map((all) => ({ [table]: isOf("acme", all[table] ?? []) }));
    expect(differencesOf(own ?? {}, there ?? {})).toEqual([]);
  }
  const months = "select * from build_months where workspace = 'acme' order by month, project, artifact, bucket";
  expect((await sql.raw(months).execute(database.db)).rows).toEqual((await sql.raw(months).execute(expected.db)).rows);
  // The other workspace was not touched.
  const { rows: left } = await sql<{ workspaces: string[] }>`
    select array_agg(distinct workspace) as workspaces from operations where error = 'spoiled'`.execute(database.db);
  expect(left).toEqual([{ workspaces: ["globex"] }]);
});

it("a removed workspace is hidden at once; its rows go, also after a restart; a new log of its name begins anew", async () => {
  await using on = await stage();
  await using logs = await streams(on, both);
  let last = 0;
  for (const workspace of both) {
    const events = randomEvents(seeded(9), 600).filter(({ source }) => source.startsWith(`${workspace}/`));
    await writeTogether(logs.log(workspace), events, 5);
  }
  const ends = async (workspace: string) => sequenceOf((await logs.log(workspace).reader.bounds()).lastOffset);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  {
    await using query = await logs.startQuery();
    for (const workspace of both) await reaches(query, await ends(workspace), workspace);
  }
  const before = await rowsOf(database, "acme");
  expect(Object.values(await rowsOf(database, "globex")).some((count) => count > 100)).toBe(true);
  expect(await forgetWorkspace(database.db, "globex")).toBe(true);
  // A process that is killed has done some of the transactions. It stays a removed workspace, and the next query goes on.
  for (const transactions of [0, 1, 5, 20]) {
    await expect(deleteSome(database, "globex", transactions)).rejects.toThrow("killed");
    const left = await rowsOf(database, "globex");
    expect(left).toMatchObject({ checkpoint: 1 });
    expect(Object.values(left).some((count) => count > 1)).toBe(true);
  }
  await logs.remove("globex");
  await using query = await logs.startQuery();
  using ask = queryClient(query.address);
  await expect(ask.listSources({ workspace: "globex" })).rejects.toMatchObject({ code: "not_ready" });
  const areGone = async () => Object.values(await rowsOf(database, "globex")).every((count) => count === 0);
  await until(areGone, { message: "the rows to be gone" });
  expect(await rowsOf(database, "acme")).toEqual(before);

  await logs.begin("globex");
  last = (await write(logs.log("globex"), build("globex").events)).at(-1) ?? 0;
  await reaches(query, last, "globex");
  const { items, position } = await ask.listSources({ workspace: "globex" });
  expect(items).toMatchObject([{ source: sourceOf("globex") }]);
  expect(parsePosition(position)?.epoch).toBe(logs.log("globex").epoch);
  await logs.remove("globex");
  expect(await query.forget("globex")).toBe(true);
  await expect(ask.listSources({ workspace: "globex" })).rejects.toMatchObject({ code: "not_ready" });
});

it("a removal that query hears of, or that ended while it was stopped, leaves nothing of that log alone", async () => {
  await using on = await stage();
  await using logs = await streams(on, both);
  const removals = new WorkspaceStore(logs.nats);
  await removals.ensure();
  const removed = async () => {
    const { epoch } = logs.log("globex");
    const begun = await removals.begin({ workspace: "globex", began: "", who: "alice", kind: "local" });
    await logs.remove("globex");
    await removals.advance(withEpochs({ ...begun, state: "removing" }, [epoch]));
    return begun;
  };
  const writeBoth = async () => {
    let last = 0;
    for (const workspace of both) last = (await write(logs.log(workspace), build(workspace).events)).at(-1) ?? 0;
    return last;
  };
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const isLeft = async (sources: number) => {
    const { sources: left = 0, checkpoint = 0 } = await rowsOf(database, "globex");
    return left === sources && checkpoint === sources;
  };
  let before: Readonly<Record<string, number>>;
  {
    await using query = await logs.startQuery();
    using ask = queryClient(query.address);
    const last = await writeBoth();
    for (const workspace of both) await reaches(query, last, workspace);
    before = await rowsOf(database, "acme");
    await removed();
    await until(() => isLeft(0), { message: "the rows to be gone" });
    await expect(ask.listSources({ workspace: "globex" })).rejects.toMatchObject({ code: "not_ready" });
    expect((await ask.workspaces({ workspace: "" })).items).toMatchObject([{ workspace: "acme", sources: 1n }]);
    expect((await readiness(query.addresses.health)).status).toBe(200);
    await logs.begin("globex");
    await write(logs.log("globex"), build("globex").events);
    await reaches(query, last, "globex");
    expect(await isLeft(1)).toBe(true);
  }
  // While query is stopped, the next log begins as well.
  await removals.advance({
    ...(await removed()),
    state: "done",
    epochs: (await removals.removalOf("globex"))?.epochs ?? [],
  });
  await logs.begin("globex");
  await write(logs.log("globex"), build("globex").events.slice(0, 1));
  await using query = await logs.startQuery();
  using ask = queryClient(query.address);
  const isAnew = async () => {
    const [found] = (await ask.workspaces({ workspace: "globex" })).items;
    return parsePosition(found?.position ?? "")?.epoch === logs.log("globex").epoch;
  };
  await until(isAnew, { message: "the new log to be projected" });
  const { items, position } = await ask.listSources({ workspace: "globex" });
  expect(items).toHaveLength(1);
  expect(parsePosition(position)).toMatchObject({ epoch: logs.log("globex").epoch });
  expect((await ask.listSessions({ workspace: "globex" })).items).toHaveLength(1);
  expect((await ask.listOperations({ workspace: "globex" })).items).toEqual([]);
  expect(await rowsOf(database, "acme")).toEqual(before);
});

it("a workspace that is removed while tables are rebuilt stays hidden in the new ones, and its rows go", async ({
  signal,
}) => {
  await using on = await stage();
  await using logs = await streams(on, both);
  for (const workspace of both) await write(logs.log(workspace), build(workspace).events);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const { databaseUrl } = on;
  // The new tables have both when it is removed.
  const isRemoved = (workspace: string) => workspace === "globex";
  const options = { databaseUrl, logs: { ...logs.logs, isRemoved }, views: views({ textRows: false }), signal };
  expect(await rebuildWorkspace({ ...options, workspace: "globex" })).toBe(false);
  expect(await rebuild(options)).toBe(true);
  const { rows } = await sql<{ workspace: string; removed: boolean }>`
    select workspace, removed from checkpoint order by workspace`.execute(database.db);
  expect(rows).toEqual([
    { workspace: "acme", removed: false },
    { workspace: "globex", removed: true },
  ]);
  expect(await rowsOf(database, "globex")).toMatchObject({ sources: 1 });
  await logs.remove("globex");
  await using _query = await logs.startQuery();
  const areGone = async () => Object.values(await rowsOf(database, "globex")).every((count) => count === 0);
  await until(areGone, { message: "the rows to be gone" });
  expect(await rowsOf(database, "acme")).toMatchObject({ sources: 1, sessions: 1 });
});

/** Deletes rows of a removed workspace until so many transactions are over. */
async function deleteSome(database: Database, workspace: string, transactions: number): Promise<void> {
  await using pipelines = new Pipelines(database, 1);
  const lane = pipelines.lane();
  let left = transactions;
  const killed: Lane = {
    ...lane,
    transaction: async (work) => {
      if (left === 0) throw new Error("killed");
      left -= 1;
      return lane.transaction(work);
    },
  };
  await deleteWorkspace(killed, workspace, new AbortController().signal);
}
