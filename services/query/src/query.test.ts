import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { openDatabase } from "./db/database.ts";
import { forgetSessions } from "./forget-sessions.ts";
import { startQuery } from "./query.ts";
import { queryClient } from "./testing/client.ts";
import { reaches, stage } from "./testing/stage.ts";
import { story } from "./testing/story.ts";

async function readiness(health: string): Promise<{ status: number; checks: Record<string, string> }> {
  const response = await fetch(`http://${health}/readyz`);
  return { status: response.status, ...((await response.json()) as { checks: Record<string, string> }) };
}

describe("refuses tables that are not this log's", () => {
  it.each([
    ["another log", { epoch: "other1", position: 1 }, /follows another log .*tapedeck rebuild.*tapedeck restore/],
    ["beyond the log's end", { position: 1_000 }, /beyond the log's end .*tapedeck rebuild.*tapedeck restore/],
  ])("%s", async (_what, checkpoint, message) => {
    await using on = await stage();
    const [position = 0] = await on.write([story().tell({ kind: "source.added" })]);
    {
      await using query = await on.startQuery();
      await reaches(query, position);
    }
    await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
    await database.db.updateTable("checkpoint").set(checkpoint).execute();
    await expect(on.startQuery()).rejects.toThrow(message);
  });
});

it("refuses the schema of a newer Tapedeck in one sentence", async () => {
  await using on = await stage();
  await (await on.startQuery())[Symbol.asyncDispose]();
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`insert into kysely_migration values ('9999-next', '')`.execute(database.db);
  await expect(on.startQuery()).rejects.toThrow(/schema of a newer Tapedeck .*9999-next.*: update Tapedeck/);
});

it("names a port that is taken", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  const port = Number(query.address.split(":")[1]);
  await expect(on.startQuery({ grpc: { host: "127.0.0.1", port } })).rejects.toThrow(
    `port ${port} on 127.0.0.1 is taken`,
  );
});

it("waits for a database that is away, and goes on where it was", async () => {
  await using on = await stage();
  const folder = await mkdtemp(join(tmpdir(), "tapedeck-query-"));
  await chmod(folder, 0o711);
  const start = (port: number) => startPostgres({ dataDir: join(folder, "postgres"), port, fsync: false });
  let postgres = await start(0);
  try {
    await postgres.ensureDatabase("tapedeck");
    const config = { ...on.config, databaseUrl: postgres.url("tapedeck") };
    await using query = await startQuery(config, silentLogger);
    using ask = queryClient(query.address);
    const tale = story();
    const [first = 0] = await on.write([tale.tell({ kind: "source.added" })]);
    await reaches(query, first);

    await postgres.kill("SIGKILL");
    const later = tale.session("S");
    later.started();
    const [second = 0] = await on.write(tale.events.slice(1));
    await expect(ask.listSources()).rejects.toMatchObject({ code: "not_ready" });
    await until(async () => (await readiness(query.addresses.health)).status === 503, { message: "not to be ready" });

    postgres = await start(postgres.port);
    await reaches(query, second);
    expect((await ask.listSources()).items).toMatchObject([{ current_session: "S", last_position: on.at(second) }]);
    expect(await readiness(query.addresses.health)).toMatchObject({ status: 200 });
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

it("waits for a log that is away", async () => {
  await using on = await stage();
  const tale = story();
  const [first = 0] = await on.write([tale.tell({ kind: "source.added" })]);
  await on.nats.kill();
  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  await expect(ask.position()).rejects.toMatchObject({ code: "not_ready" });
  expect(await readiness(query.addresses.health)).toMatchObject({ status: 503 });
  await on.nats.restart();
  await reaches(query, first);

  await on.nats.kill();
  // What the tables have is answered all the same.
  expect((await ask.listSources()).items).toHaveLength(1);
  await on.nats.restart();
  const second = await until(async () => (await on.write([tale.tell({ kind: "source.checkpoint" })]))[0], {
    message: "the log to be back",
  });
  await reaches(query, second);
});

it("one query projects, the other stands by, answers, and takes over", async () => {
  await using on = await stage();
  const tale = story();
  const first = await on.startQuery();
  await using second = await on.startQuery();
  const [written = 0] = await on.write([tale.tell({ kind: "source.added" })]);
  await reaches(first, written);
  using ask = queryClient(second.address);
  const { head } = await ask.readState({ source: tale.source, min_position: on.at(written) });
  expect(head?.position).toBe(on.at(written));
  await first[Symbol.asyncDispose]();
  const [next = 0] = await on.write([tale.tell({ kind: "source.checkpoint" })]);
  await reaches(second, next);
});

it("an erased session leaves nothing", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  const tale = story();
  const [kept, erased] = [tale.session("kept"), tale.session("erased")];
  for (const session of [kept, erased]) {
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    session.port(9_000);
  }
  const before = await on.write(tale.events);
  await reaches(query, before.at(-1) ?? 0);
  const [mark = 0] = await on.write([tale.tell({ kind: "session.erased", session: "erased", subject: "erased" })]);
  await reaches(query, mark);

  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const tables = ["sessions", "operations", "fold_states", "skaffold_artifacts", "skaffold_phases", "skaffold_ports"];
  for (const table of tables) {
    const { rows } = await sql<{ session: string }>`select distinct session from ${sql.table(table)}`.execute(
      database.db,
    );
    expect(rows).toEqual([{ session: "kept" }]);
  }
  const { rows } = await sql`select kind from events where session = 'erased'`.execute(database.db);
  expect(rows).toEqual([{ kind: "session.erased" }]);
  expect((await ask.listSources()).items).toMatchObject([{ current_session: "kept" }]);
});

it("forgets the sessions that ended before a place, and no other", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  const tale = story();
  const [old, current] = [tale.session("1-old"), tale.session("2-current")];
  for (const session of [old, current]) {
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    if (session === old) session.ended();
  }
  const last = (await on.write(tale.events)).at(-1) ?? 0;
  await reaches(query, last);

  expect(await forgetSessions(on.databaseUrl, last + 1)).toBe(1);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  for (const table of ["sessions", "operations", "events", "fold_states", "skaffold_artifacts"]) {
    const { rows } = await sql`select distinct session from ${sql.table(table)} where session <> ''`.execute(
      database.db,
    );
    expect(rows).toEqual([{ session: "2-current" }]);
  }
  expect(await forgetSessions(on.databaseUrl, last + 1)).toBe(0);
});

it("has no rows for text, until it is asked to: then for all there was", async () => {
  await using on = await stage();
  const tale = story();
  const session = tale.session("S");
  session.text("Building [web]...\n");
  session.mirrored("web", "InProgress");
  session.build("web", "started");
  const last = (await on.write(tale.events)).at(-1) ?? 0;
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const kinds = async () =>
    (await database.db.selectFrom("events").select("kind").orderBy("position").execute()).map(({ kind }) => kind);
  {
    await using query = await on.startQuery();
    await reaches(query, last);
    expect(await kinds()).toEqual(["build.started"]);
  }
  await using _query = await on.startQuery({ textRows: true });
  await until(async () => (await kinds()).join() === "log.written,build.started", { message: "the text to have rows" });
});

it("the analyst reads everything and writes nothing", async () => {
  await using on = await stage();
  await using query = await on.startQuery({ analystPassword: "only reading" });
  const [written = 0] = await on.write([story().tell({ kind: "source.added" })]);
  await reaches(query, written);
  const url = new URL(on.databaseUrl);
  url.username = "tapedeck_analyst";
  url.password = "only reading";
  await using analyst = openDatabase({ url: url.href, connections: 1 });
  const { rows } = await sql`select count(*) as count from events`.execute(analyst.db);
  expect(rows).toEqual([{ count: 1 }]);
  for (const view of ["build_times_daily", "command_times", "vagrant_jobs"]) {
    await sql`select * from ${sql.table(view)}`.execute(analyst.db);
  }
  await sql`set default_transaction_read_only = off`.execute(analyst.db);
  for (const statement of [
    "delete from sources",
    "create table mine (a int)",
    "create temporary table mine (a int)",
    "create schema mine",
  ]) {
    await expect(sql.raw(statement).execute(analyst.db)).rejects.toThrow(
      /permission denied|no schema has been selected/,
    );
  }
});

it("tells in its metrics how far the tables are", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  const tale = story();
  tale.session("S").started();
  const written = await on.write(tale.events);
  await reaches(query, written.at(-1) ?? 0);
  const metrics = await (await fetch(`http://${query.addresses.health}/metrics`)).text();
  expect(metrics).toMatch(/tapedeck_query_position\{.*\} 1\n/);
  expect(metrics).toMatch(/tapedeck_query_lag_events\{.*\} 0\n/);
});
