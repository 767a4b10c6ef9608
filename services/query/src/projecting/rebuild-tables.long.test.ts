import { jetstreamManager } from "@nats-io/jetstream";
import { endOf, type Offset, offsetOf } from "@tapedeck/shared/log/offset";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { connect } from "nats";
import { expect, it } from "vitest";
import { rebuildCall } from "../api/tables/rebuild-call.ts";
import { createLogin, dropLogin } from "../db/access/workspace-logins.ts";
import { openDatabase } from "../db/database.ts";
import { queryClient } from "../testing/client.ts";
import { logsIn } from "../testing/logs.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { scenario, writeTogether } from "../testing/scenario.ts";
import { type Stage, schemas, stage, written } from "../testing/stage.ts";
import { projectAlone, streams } from "../testing/streams.ts";
import { contents } from "../testing/tables.ts";
import { views } from "../views/views.ts";
import type { Projected } from "./project.ts";
import { type RebuiltBatch, rebuild } from "./rebuild.ts";
import { sumBuildDays } from "./sum-build-days.ts";

const all = views({ textRows: false });

it("continues an interrupted rebuild of several workspaces", async ({ signal }) => {
  await using on = await stage();
  await using logs = await projectedStreams(on, 4);
  const expected = await contents(on.databaseUrl);
  await spoil(on.databaseUrl);

  const options = {
    databaseUrl: on.databaseUrl,
    logs: logs.logs,
    views: all,
    limits: { events: 100, bytes: 1_000_000 },
  };
  const third = 35;
  const first = new AbortController();
  const stopped = (one: AbortController) =>
    rebuild({ ...options, signal: one.signal, onProgress: ({ position }) => position > endOf(third) && one.abort() });
  expect(await stopped(first)).toBe(false);
  expect(await schemas(on.databaseUrl)).toEqual([
    "tapedeck",
    "tapedeck_internal",
    "tapedeck_rebuild",
    "tapedeck_rebuild_internal",
  ]);

  // A caller that asked for it, and has not stopped it, must not take that for its end.
  const call = rebuildCall(
    () => stopped(new AbortController()),
    { workspace: "", fresh: false },
    new AbortController().signal,
  );
  await expect(Array.fromAsync(call)).rejects.toMatchObject({ code: "not_ready" });

  const { lastOffset } = await logs.log("globex").reader.bounds();
  expect(lastOffset).toBeGreaterThan(endOf(2 * third));
  const firsts = new Map<string, Offset>();
  const onProgress = ({ workspace, position }: RebuiltBatch) =>
    firsts.set(workspace, firsts.get(workspace) ?? position);
  expect(await rebuild({ ...options, signal, onProgress })).toBe(true);
  // One workspace had come so far.
  expect(Math.max(...firsts.values())).toBeGreaterThan(endOf(third));
  expect(await contents(on.databaseUrl)).toEqual(expected);
  await using rebuilt = openDatabase({ url: on.databaseUrl, connections: 2 });
  expect(await sumBuildDays(rebuilt, { before: "infinity" })).toBeGreaterThan(0);
  expect(await contents(on.databaseUrl)).toEqual(expected);
});

it("begins anew when messages were removed since it was interrupted", async ({ signal }) => {
  await using on = await stage();
  const moved = sourceName({ workspace: "left", developer: "alice", project: "shop", upstream: "skaffold" });
  await on.write([scenario(moved).add({ kind: "source.added" })]);
  const end = await written(on, randomEvents(seeded(7), 600));
  const options = { databaseUrl: on.databaseUrl, logs: logsIn(on.log.reader), views: all };
  await projectUntil(on.databaseUrl, on.log.reader, end);
  const first = new AbortController();
  const onProgress = ({ position }: Projected) => position >= endOf(1) && first.abort();
  expect(
    await rebuild({ ...options, limits: { events: 100, bytes: 1_000_000 }, signal: first.signal, onProgress }),
  ).toBe(false);
  expect(await schemas(on.databaseUrl)).toEqual([
    "tapedeck",
    "tapedeck_internal",
    "tapedeck_rebuild",
    "tapedeck_rebuild_internal",
  ]);

  const nc = await connect({ servers: on.nats.url });
  await (await jetstreamManager(nc)).streams.deleteMessage(streamOf("acme"), 1, true);
  await nc.close();
  const call = rebuildCall(
    ({ fresh }) => rebuild({ ...options, fresh, signal }),
    { workspace: "", fresh: true },
    signal,
  );
  await Array.fromAsync(call);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const found = await sql<{ workspace: string }>`select workspace from sources`.execute(database.db);
  const workspaces = found.rows.map(({ workspace }) => workspace);
  expect([workspaces.length > 0, workspaces.includes("left")]).toEqual([true, false]);
});

it("starts by itself when the tables have another version, and these answer meanwhile", async ({ signal }) => {
  await using on = await stage();
  await using _logs = await projectedStreams(on, 5);
  const expected = await contents(on.databaseUrl);
  await spoil(on.databaseUrl);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await database.db.updateTable("checkpoint").set({ projection: "operations.0" }).execute();

  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  expect((await ask.listSources()).items).not.toEqual([]);
  // The tables are compared once they have changed places: to read all of them again and again takes long.
  const hasSwapped = async () =>
    (await database.db.selectFrom("checkpoint").select("projection").executeTakeFirst())?.projection !== "operations.0";
  await until(hasSwapped, { message: "the new tables", signal });
  const isRebuilt = async () => expect(await contents(on.databaseUrl)).toEqual(expected) ?? true;
  await until(isRebuilt, { message: "the tables to be rebuilt", signal });
});

it("refuses to replace the tables of another log, which may be all that is left of it", async ({ signal }) => {
  await using on = await stage();
  const end = await written(on, randomEvents(seeded(6), 500));
  await projectUntil(on.databaseUrl, on.log.reader, end);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await database.db
    .updateTable("checkpoint")
    .set({ epoch: "gone", position: offsetOf(1_000_000) })
    .execute();
  const expected = await contents(on.databaseUrl);
  const rebuilding = () => rebuild({ databaseUrl: on.databaseUrl, logs: logsIn(on.log.reader), views: all, signal });
  await expect(rebuilding()).rejects.toThrow("follows another log");
  const call = rebuildCall(rebuilding, { workspace: "", fresh: false }, signal);
  await expect(Array.fromAsync(call)).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringContaining("follows another log"),
  });
  expect(await contents(on.databaseUrl)).toEqual(expected);
});

it("lets readers read the new tables from the swap on, and a login only its workspace", async () => {
  await using on = await stage();
  const sources = ["acme", "globex"].map((workspace) =>
    sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" }),
  );
  for (const source of sources) await on.write([scenario(source).add({ kind: "source.added" })]);
  // Nothing else may let readers in: no query runs.
  await rebuild({
    databaseUrl: on.databaseUrl,
    logs: logsIn(on.log.reader),
    views: all,
    signal: AbortSignal.timeout(60_000),
  });

  await using owner = openDatabase({ url: on.databaseUrl, connections: 1 });
  const { rows } = await sql`
    select has_table_privilege('tapedeck_analyst', 'tapedeck.sources', 'select') as documented,
      has_table_privilege('tapedeck_analyst', 'tapedeck_internal.checkpoint', 'select') as internal`.execute(owner.db);
  expect(rows).toEqual([{ documented: true, internal: false }]);
  const { login, password } = await createLogin(owner, { workspace: "acme", limits: on.config.readers });
  try {
    const url = new URL(on.databaseUrl);
    url.username = login;
    url.password = password;
    await using reader = openDatabase({ url: url.href, connections: 1 });
    expect((await sql`select workspace from tapedeck.sources`.execute(reader.db)).rows).toEqual([
      { workspace: "acme" },
    ]);
  } finally {
    await dropLogin(owner, login);
  }
});

/** The logs of two workspaces, and tables with all that is in them. */
async function projectedStreams(on: Stage, seed: number) {
  const events = Map.groupBy(randomEvents(seeded(seed), 1_500), ({ source }) => source.split("/")[0] ?? "");
  await using stack = new AsyncDisposableStack();
  const logs = stack.use(await streams(on, [...events.keys()]));
  for (const [workspace, some] of events) await writeTogether(logs.log(workspace), some, 5);
  await projectAlone(on.databaseUrl, new Map([...events.keys()].map((workspace) => [workspace, logs.log(workspace)])));
  stack.move();
  return logs;
}

/** Something that no projection would write. */
async function spoil(url: string): Promise<void> {
  await using database = openDatabase({ url, connections: 1 });
  await database.db.updateTable("operations").set({ outcome: "unknown" }).execute();
  await database.db.deleteFrom("events").execute();
}
