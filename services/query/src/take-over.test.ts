import { DeveloperErasureStore, developerKey } from "@tapedeck/shared/log/erasures/developer-erasures";
import { requestTablesPassed } from "@tapedeck/shared/log/erasures/tables-passed";
import { endOf, logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { defaultQuery, QueryMapStore, queriesOf } from "@tapedeck/shared/log/queries/query-map";
import { endSubjects } from "@tapedeck/shared/log/subjects";
import { requestTablesEnd, tablesEndSchema } from "@tapedeck/shared/log/tables-end";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import type { QueryConfig } from "./config.ts";
import { openDatabase } from "./db/database.ts";
import type { Query } from "./query.ts";
import { queryClient, readiness } from "./testing/client.ts";
import { migrated } from "./testing/migrated.ts";
import { randomEvents, seeded } from "./testing/random-scenario.ts";
import { writeTogether } from "./testing/scenario.ts";
import { reaches, stage } from "./testing/stage.ts";
import { projectAlone, streams } from "./testing/streams.ts";
import { contents, differencesOf } from "./testing/tables.ts";
import { rowsOf } from "./testing/workspace-rows.ts";

const both = ["acme", "globex"];
const ports = [await ownPort(), await ownPort()];
const [second = "", third = ""] = ports.map((port) => `127.0.0.1:${port}`);

/** Where a query listens that is reached at this address. */
function listenerAt(address: string) {
  return { host: "127.0.0.1", port: Number(address.split(":")[1]) };
}

/** Two workspaces with events, the default query's database, and those of two more. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await stage());
  const logs = stack.use(await streams(on, both));
  const [two, three] = [stack.use(await freshDatabase(migrated)), stack.use(await freshDatabase(migrated))];
  const events = Map.groupBy(randomEvents(seeded(21), 1_500), ({ source }) => source.split("/")[0] ?? "");
  const map = new QueryMapStore(logs.nats);
  const more =
    (at: string, databaseUrl: string) =>
    (settings: Partial<QueryConfig> = {}) =>
      on.startQuery({ databaseUrl, advertise: at, grpc: listenerAt(at), workspaces: ["ac*"], ...settings });
  const owned = stack.move();
  return {
    on,
    logs,
    map,
    urls: { first: on.databaseUrl, second: two.url, third: three.url },
    startFirst: (settings: Partial<QueryConfig> = {}) => on.startQuery(settings),
    startSecond: more(second, two.url),
    startThird: more(third, three.url),
    async writeSome(count: number, workspaces = both) {
      for (const workspace of workspaces)
        await writeTogether(logs.log(workspace), events.get(workspace)?.splice(0, count) ?? [], 5);
    },
    end: async (workspace: string) => sequenceOf((await logs.log(workspace).reader.bounds()).lastOffset),
    entry: async (workspace = "acme") => queriesOf(await map.read(), workspace),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type Harness = Awaited<ReturnType<typeof harness>>;

async function isAt({ entry }: Harness, at: string): Promise<void> {
  await until(async () => (await entry()).at === at, { message: `the map to name ${at === "" ? "the first" : at}` });
}

/** Until the map names a query, the one that it names now answers about all that is written, and never goes back. */
async function writtenAndReadUntil(at: Harness, then: string, now: ReturnType<typeof queryClient>): Promise<void> {
  let last = logStart;
  const faults: unknown[] = [];
  const isThere = async () => {
    await at.writeSome(3);
    const { position, items } = await now.listSources();
    const { offset = logStart } = parsePosition(position) ?? {};
    if (offset === logStart || offset < last || items.length === 0) faults.push({ offset, last, items });
    last = offset;
    return (await at.entry()).at === then;
  };
  // It refuses once it has deleted its rows, which a busy machine may see before the map is read again.
  const failed = async (error: unknown) => {
    const isOver = (await at.entry()).at === then;
    if (!isOver) faults.push(error);
    return isOver;
  };
  await until(() => isThere().catch(failed), { message: `the map to name ${then}` });
  expect(faults).toEqual([]);
}

/** The one that answers is the only one with rows, and nobody else is in the map. */
async function isOver(harness: Harness, left: string): Promise<void> {
  const isAlone = async () => {
    const { also, offered } = await harness.entry();
    return also.length === 0 && !offered;
  };
  await until(isAlone, { message: "the query before to be gone from the map" });
  await using database = openDatabase({ url: left, connections: 1 });
  expect(Object.values(await rowsOf(database, "acme")).every((count) => count === 0)).toBe(true);
}

/** The tables of acme have what a projection of its log alone makes. */
async function isWhole({ logs, end }: Harness, query: Query, url: string): Promise<void> {
  await reaches(query, await end("acme"), "acme");
  await using straight = await freshDatabase(migrated);
  await projectAlone(straight.url, new Map([["acme", logs.log("acme")]]));
  // Events of a session that was erased meanwhile are not given to those who follow live, so groups and blocks may differ.
  const {
    event_groups: _,
    event_blocks: __,
    event_positions: ___,
    build_times: ____,
    ...tables
  } = await contents(straight.url);
  const found = await contents(url);
  const own = Object.keys(tables).map((table) => [
    table,
    found[table]?.filter((row) => JSON.stringify(row).includes("acme")) ?? [],
  ]);
  expect(differencesOf(Object.fromEntries(own), tables)).toEqual([]);
  expect(tables.operations?.length).toBeGreaterThan(5);
}

it("a workspace is taken over while it is written, and given back; the others stay where they are", async () => {
  await using at = await harness();
  const { urls } = at;
  await at.writeSome(150);
  await using first = await at.startFirst();
  await using query = await at.startSecond();
  using askFirst = queryClient(first.address);
  using askSecond = queryClient(query.address);
  const before = await at.end("acme");
  await writtenAndReadUntil(at, second, askFirst);
  expect(sequenceOf(query.positionOf("acme"))).toBeGreaterThanOrEqual(before);
  await at.writeSome(50);
  await isOver(at, urls.first);
  await isWhole(at, query, urls.second);
  expect((await askSecond.listSources()).items.length).toBeGreaterThan(0);
  const refused = {
    code: "not_ready",
    message: `the query at ${second} has the workspace acme, and this one does not`,
  };
  await expect(askFirst.listSources()).rejects.toMatchObject(refused);
  await expect(askFirst.rebuild("acme")).rejects.toMatchObject(refused);
  await reaches(first, await at.end("globex"), "globex");
  expect((await askFirst.listSources({ workspace: "globex" })).items.length).toBeGreaterThan(0);
  await expect(askSecond.listSources({ workspace: "globex" })).rejects.toMatchObject({ code: "not_ready" });
  // What ingest asks before it assigns positions.
  const end = await at.end("acme");
  expect(await requestTablesEnd(at.logs.nats, "acme", 10_000, { query: second })).toMatchObject({ seq: end });

  await query[Symbol.asyncDispose]();
  await using giving = await at.startSecond({ workspaces: [] });
  using askGiving = queryClient(giving.address);
  await writtenAndReadUntil(at, defaultQuery, askGiving);
  await isOver(at, urls.second);
  await isWhole(at, first, urls.first);
  expect(await at.map.read()).toEqual(new Map());
});

it("a query that gets a workspace reports the end of its tables, though nothing is recorded any more", async () => {
  await using at = await harness();
  const { logs, map } = at;
  const ends = new Map<string, number>();
  for (const workspace of both) {
    logs.nats.subscribe(endSubjects(workspace).tables, {
      callback: (_, message) => void ends.set(workspace, tablesEndSchema.parse(message.json()).seq),
    });
  }
  const isReported = async (workspace: string) => ends.get(workspace) === (await at.end(workspace));
  await at.writeSome(20);
  await using query = await at.startSecond({ workspaces: ["*"], leaveMs: 600_000 });
  for (const workspace of both) await until(() => isReported(workspace), { message: `the end of ${workspace}` });
  await map.change("acme", () => ({ at: third, also: [second], offered: false }));
  await at.writeSome(20, ["acme"]);
  await reaches(query, await at.end("acme"), "acme");
  // Its ends are read once more, and that of acme is not its to report.
  await at.writeSome(5, ["globex"]);
  await until(() => isReported("globex"), { message: "the next end of globex" });
  expect(await isReported("acme")).toBe(false);
  await map.change("acme", () => ({ at: second, also: [], offered: false }));
  await until(() => isReported("acme"), { message: "the end of acme" });
});

it("of two queries that are set to take a workspace over one does, and the other says which has it", async () => {
  await using at = await harness();
  await at.writeSome(150);
  await using first = await at.startFirst();
  const [one, two] = await Promise.all([at.startSecond(), at.startThird()]);
  await using _ = one;
  await using __ = two;
  await until(async () => (await at.entry()).at !== defaultQuery, { message: "one of them to have it" });
  const winner = (await at.entry()).at;
  const [won, lost] = winner === second ? [one, two] : [two, one];
  const sentence = `workspace acme is not taken over, although query.workspaces (ac*) has it: the query at ${winner} has it, so take it out of query.workspaces there, or here`;
  const says = async () => JSON.stringify(await readiness(lost.addresses.health)).includes(sentence);
  await until(says, { message: "the other to say so" });
  expect(JSON.stringify(await readiness(won.addresses.health))).not.toContain("not taken over");
  await isOver(at, at.urls.first);
  await isOver(at, winner === second ? at.urls.third : at.urls.second);
  await at.writeSome(30);
  await isWhole(at, won, winner === second ? at.urls.second : at.urls.third);
  expect(first.positionOf("globex")).toBe(endOf(await at.end("globex")));
});

it("the query before keeps its rows, and answers, while the new one can't be reached at its address", async () => {
  await using at = await harness();
  await at.writeSome(150);
  await using first = await at.startFirst();
  using ask = queryClient(first.address);
  await using wrong = await at.startSecond({ advertise: third });
  await isAt(at, third);
  const sentence = `workspace acme keeps its rows here, because nobody takes connections at ${third}, where the query is said to be that has taken it over: start that query or, if its query.advertise is wrong, have it give the workspace back under that address first`;
  const says = async () => JSON.stringify(await readiness(first.addresses.health)).includes(sentence);
  await until(says, { message: "the query before to say so" });
  await at.writeSome(30);
  const end = await at.end("acme");
  await reaches(first, end, "acme");
  expect((await ask.listSources()).items.length).toBeGreaterThan(0);
  expect((await at.entry()).also).toEqual([defaultQuery]);
  // What the sentence asks for.
  await wrong[Symbol.asyncDispose]();
  await using giving = await at.startSecond({ advertise: third, workspaces: [] });
  await isAt(at, defaultQuery);
  await giving[Symbol.asyncDispose]();
  await using query = await at.startSecond();
  await isAt(at, second);
  await isWhole(at, query, at.urls.second);
  expect(JSON.stringify(await readiness(first.addresses.health))).not.toContain("keeps its rows");
});

it("a query that is killed at a step of a take-over continues from there", async () => {
  await using at = await harness();
  const { urls, map, logs } = at;
  await at.writeSome(150);
  {
    await using first = await at.startFirst();
    await reaches(first, await at.end("acme"), "acme");
    // Killed when it was in the map, and had no rows yet.
    await map.change("acme", (entry) => ({ ...entry, also: [second] }));
    expect(await requestTablesEnd(logs.nats, "acme", 200, { query: second })).toBeUndefined();
  }
  {
    // Killed when its tables had caught up, and it had not written so.
    await projectAlone(urls.second, new Map([["acme", logs.log("acme")]]));
    await using query = await at.startSecond();
    await isAt(at, second);
    await isWhole(at, query, urls.second);
  }
  // The one before was killed when it still had its rows.
  expect(await at.entry()).toEqual({ at: second, also: [defaultQuery], offered: false });
  await using first = await at.startFirst();
  await reaches(first, await at.end("globex"), "globex");
  await using query = await at.startSecond();
  await isOver(at, urls.first);
  await at.writeSome(30);
  await isWhole(at, query, urls.second);
  await reaches(first, await at.end("globex"), "globex");
});

it("rows that nobody has asked about erasures meanwhile are made again before they are served", async () => {
  await using at = await harness();
  const { urls, map } = at;
  await at.writeSome(150);
  {
    await using query = await at.startSecond();
    await isAt(at, second);
    await isWhole(at, query, urls.second);
  }
  // An operator has given all to the default query, because the second one seemed to be lost.
  await map.change("acme", (entry) => ({ ...entry, at: defaultQuery, also: [] }));
  await using database = openDatabase({ url: urls.second, connections: 1 });
  const spoiled = await database.db.updateTable("operations").set({ error: "spoiled" }).executeTakeFirst();
  expect(spoiled.numUpdatedRows).toBeGreaterThan(5n);
  await using query = await at.startSecond();
  await isAt(at, second);
  await isWhole(at, query, urls.second);
});

it("an erasure that is under way holds up no take-over, and waits for the tables of the new query", async () => {
  await using at = await harness();
  await at.writeSome(150);
  const erasures = new DeveloperErasureStore(at.logs.nats);
  await erasures.begin(developerKey({ workspace: "acme", developer: "bob" }), {
    workspace: "acme",
    developer: "bob",
    tokens: [],
    sessions: 1,
    erased: 0,
    state: "removing" as const,
    began: "2026-11-20T09:00:00Z",
    who: "alice",
    kind: "person" as const,
  });
  const end = { epoch: at.logs.log("acme").epoch, seq: await at.end("acme") };
  const options = { query: second, timeoutMs: 60_000 };
  await using query = await at.startSecond();
  await isAt(at, second);
  await isWhole(at, query, at.urls.second);
  expect(await requestTablesPassed(at.logs.nats, "acme", { ...end, ...options })).toBe(true);
  expect(await requestTablesPassed(at.logs.nats, "acme", { ...end, seq: end.seq + 1, ...options })).toBe(false);
  expect(await requestTablesPassed(at.logs.nats, "acme", { ...end, epoch: "other", ...options })).toBe(false);
});
