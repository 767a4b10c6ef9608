import { stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { requestTablesEnd } from "@tapedeck/shared/log/tables-end";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { connect } from "nats";
import { describe, expect, it } from "vitest";
import { createLogin, dropLogin } from "./db/access/workspace-logins.ts";
import { openDatabase } from "./db/database.ts";
import { forgetSessions } from "./projecting/forget/sessions.ts";
import { forgetForeignTables } from "./projecting/forget/tables.ts";
import { rebuild } from "./projecting/rebuild.ts";
import { queryClient, readiness } from "./testing/client.ts";
import { acme, logsIn } from "./testing/logs.ts";
import { scenario } from "./testing/scenario.ts";
import { reaches, type Stage, stage } from "./testing/stage.ts";
import { views } from "./views/views.ts";

/** Rejects with the reason of a query that refuses to run, also when its start is slow and does not wait for that. */
async function refusal(on: Stage): Promise<void> {
  await using query = await on.startQuery();
  await query.failed;
}

/** Resolves with the answer about a workspace whose tables are another log's; the readiness has it, too. */
async function refusalOfTables(on: Stage): Promise<string> {
  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  const refused = async () => {
    const error = await ask.listSources().then(
      () => undefined,
      (cause: { readonly code: string; readonly message: string }) => cause,
    );
    return error?.message.includes("the database") === true && error;
  };
  const { code, message } = await until(refused, { message: "the answer to be refused" });
  expect(code).toBe("not_ready");
  expect(await readiness(query.addresses.health)).toMatchObject({ status: 503, checks: { projection: message } });
  return message;
}

describe("refuses tables that are not this log's", () => {
  it.each([
    [
      "another log",
      { epoch: "other1", position: offsetOf(1) },
      /follows another log .*tapedeck restore.*tapedeck new-epoch/,
    ],
    ["beyond the log's end", { position: offsetOf(1_000) }, /beyond the log's end .*tapedeck new-epoch/],
  ])("%s", async (_what, checkpoint, message) => {
    await using on = await stage();
    const [position = 0] = await on.write([scenario().add({ kind: "source.added" })]);
    {
      await using query = await on.startQuery();
      await reaches(query, position);
    }
    await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
    await database.db.updateTable("checkpoint").set(checkpoint).execute();
    expect(await refusalOfTables(on)).toMatch(message);
  });
});

it.each(["a rebuild", "a restart"])("tables that somebody drops while query runs come back by %s", async (what) => {
  await using on = await stage();
  const [position = 0] = await on.write([scenario().add({ kind: "source.added" })]);
  const before = await on.startQuery();
  await using _ = before;
  await reaches(before, position);
  using askBefore = queryClient(before.address);
  const { items } = await askBefore.listSources();
  expect(items).toHaveLength(1);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`drop schema tapedeck cascade`.execute(database.db);
  await sql`drop schema tapedeck_internal cascade`.execute(database.db);
  if (what === "a rebuild") {
    await askBefore.rebuild("");
    expect((await askBefore.listSources()).items).toEqual(items);
    return;
  }
  await before[Symbol.asyncDispose]();
  await using after = await on.startQuery();
  await reaches(after, position);
  using askAfter = queryClient(after.address);
  expect((await askAfter.listSources()).items).toEqual(items);
});

it("refuses a log that lost its end and has grown past the tables since", async () => {
  await using on = await stage();
  const script = scenario();
  const written = await on.write(Array.from({ length: 10 }, () => script.add({ kind: "source.checkpoint" })));
  expect(written.at(-1)).toBe(10);
  {
    await using query = await on.startQuery();
    await reaches(query, 10);
    const nc = await connect({ servers: on.nats.url });
    expect(await requestTablesEnd(nc, "acme", 10_000)).toEqual({ epoch: on.log.epoch, seq: 10 });
    await nc.close();
  }
  await on.nats.kill();
  const file = join(on.nats.streamFolder(streamOf("acme")), "1.blk");
  await truncate(file, Math.floor((await stat(file)).size * 0.65));
  await on.nats.restart();
  const end = await until(async () => sequenceOf((await on.log.reader.bounds()).lastOffset), {
    message: "the log to be back",
  });
  expect(end).toBeLessThan(10);
  await on.write(Array.from({ length: 12 }, () => script.add({ kind: "source.checkpoint" })));
  expect(await refusalOfTables(on)).toBe(
    `the database is at position ${on.endAt(10)} of workspace acme, but position ${on.at(end + 1)} was assigned to another event since, so the log has lost events: restore a backup with \`tapedeck restore\`, or continue with what is left, under new positions, with \`tapedeck new-epoch\`.`,
  );
  // Once all agree on a new epoch: tables of a log that is no more are dropped, and made from what is there.
  expect(await forgetForeignTables(on.databaseUrl, "acme", on.log.reader)).toBe(true);
  await using query = await on.startQuery();
  await reaches(query, end + 12);
});

it("keeps tables whose last events were removed from the log on purpose", async () => {
  await using on = await stage();
  const script = scenario();
  await on.write(Array.from({ length: 10 }, () => script.add({ kind: "source.checkpoint" })));
  {
    await using query = await on.startQuery();
    await reaches(query, 10);
  }
  const nc = await connect({ servers: on.nats.url });
  const { streams } = await jetstreamManager(nc);
  for (const seq of [8, 9, 10]) await streams.deleteMessage(streamOf("acme"), seq);
  await nc.close();
  await on.write(Array.from({ length: 3 }, () => script.add({ kind: "source.checkpoint" })));
  await using query = await on.startQuery();
  await reaches(query, 13);
});

it("begins no log where the tables know one, also when nothing beside the log does", async () => {
  await using on = await stage();
  await on.write([scenario().add({ kind: "source.added" })]);
  {
    await using query = await on.startQuery();
    await reaches(query, 1);
  }
  const description = join(on.nats.streamFolder(streamOf("acme")), "..", "meta.inf");
  const nc = await connectThroughRestarts(on.nats.url);
  const { streams } = await jetstreamManager(nc);
  await streams.delete("TAPEDECK_ENDS").catch(() => {});
  await on.nats.stop();
  await writeFile(description, Buffer.alloc((await stat(description)).size));
  await on.nats.restart();
  expect(await refusalOfTables(on)).toBe(
    `the nats-server has no log of workspace acme, but the database has its events up to position ${on.endAt(1)}: bring the log's files back (such as meta.inf), or restore a backup with \`tapedeck restore\`, or continue with what is left, under new positions, with \`tapedeck new-epoch\`.`,
  );
  const isMissing = () =>
    streams.info(streamOf("acme")).then(
      () => false,
      (error) => /not found/.test(error.message),
    );
  await until(isMissing, { message: "the server to say that it has no log" });
  await nc.close();
});

it("stops where a limit of the log has dropped what the tables lack, and a rebuild makes them from what there is", async () => {
  await using on = await stage();
  const script = scenario();
  const checkpoints = (count: number) => Array.from({ length: count }, () => script.add({ kind: "source.checkpoint" }));
  await on.write(checkpoints(10));
  {
    await using query = await on.startQuery();
    await reaches(query, 10);
  }
  await on.write(checkpoints(40));
  const nc = await connect({ servers: on.nats.url });
  await (await jetstreamManager(nc)).streams.update(streamOf("acme"), { max_msgs: 20 });
  await nc.close();
  await using query = await on.startQuery();
  const details = async () => (await fetch(`http://${query.addresses.health}/readyz`)).text();
  await until(async () => (await details()).includes("has dropped events that they lack"), { message: "the reason" });
  expect(await details()).toContain(`position ${on.endAt(10)} is no longer available: continue after ${on.endAt(30)}`);
  expect(sequenceOf(query.positionOf(acme))).toBe(10);
  const signal = AbortSignal.timeout(90_000);
  const log = on.log.reader;
  expect(
    await rebuild({ databaseUrl: on.databaseUrl, logs: logsIn(log), views: views({ textRows: false }), signal }),
  ).toBe(true);
  await on.write(checkpoints(1));
  await reaches(query, 51);
});

it("refuses the schema of a newer Tapedeck in one sentence", async () => {
  await using on = await stage();
  await (await on.startQuery())[Symbol.asyncDispose]();
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`insert into kysely_migration values ('9999-next', '')`.execute(database.db);
  await expect(refusal(on)).rejects.toThrow(/schema of a newer Tapedeck .*9999-next.*: update Tapedeck/);
});

it("names a port that is in use", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  const port = Number(query.address.split(":")[1]);
  await expect(on.startQuery({ grpc: { host: "127.0.0.1", port } })).rejects.toThrow(
    `port ${port} on 127.0.0.1 is taken`,
  );
});

it("one query projects; the standby answers, and takes over", async () => {
  await using on = await stage();
  const script = scenario();
  const first = await on.startQuery();
  await using second = await on.startQuery();
  const [written = 0] = await on.write([script.add({ kind: "source.added" })]);
  await reaches(first, written);
  using ask = queryClient(second.address);
  // The standby may be behind by more than an answer waits.
  const answer = () => ask.readState({ source: script.source, min_position: on.at(written) });
  expect((await until(answer, { message: "the standby's answer" })).head?.position).toBe(on.endAt(written));
  // The past is read from the log, which the standby has open all the time.
  for (let times = 0; times < 50; times++) {
    expect((await ask.readState({ source: script.source, at: on.at(written) })).head?.position).toBe(on.at(written));
    expect((await fetch(`http://${second.addresses.health}/readyz`)).status).toBe(200);
  }
  await first[Symbol.asyncDispose]();
  const [next = 0] = await on.write([script.add({ kind: "source.checkpoint" })]);
  await reaches(second, next);
});

it("an erased session leaves nothing", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  const script = scenario();
  const [kept, erased] = [script.session("kept"), script.session("erased")];
  for (const session of [kept, erased]) {
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    session.port(9_000);
  }
  const before = await on.write(script.events);
  await reaches(query, before.at(-1) ?? 0);
  const [mark = 0] = await on.write([script.add({ kind: "session.erased", session: "erased", subject: "erased" })]);
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

it("removes the sessions that ended before a position, and no others", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  const script = scenario();
  const [old, current] = [script.session("1-old"), script.session("2-current")];
  for (const session of [old, current]) {
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    if (session === old) session.ended();
  }
  const last = (await on.write(script.events)).at(-1) ?? 0;
  await reaches(query, last);

  expect(await forgetSessions(on.databaseUrl, acme, offsetOf(last + 1))).toBe(1);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  for (const table of ["sessions", "operations", "events", "fold_states", "skaffold_artifacts"]) {
    const { rows } = await sql`select distinct session from ${sql.table(table)} where session <> ''`.execute(
      database.db,
    );
    expect(rows).toEqual([{ session: "2-current" }]);
  }
  expect(await forgetSessions(on.databaseUrl, acme, offsetOf(last + 1))).toBe(0);
});

it("has rows for text only on request, and then for all earlier text", async () => {
  await using on = await stage();
  const script = scenario();
  const session = script.session("S");
  session.text("Building [web]...\n");
  session.mirrored("web", "InProgress");
  session.build("web", "started");
  const last = (await on.write(script.events)).at(-1) ?? 0;
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

it("limits what readers may read, and ends those that take too long", async () => {
  await using on = await stage();
  const readers = { ...on.config.readers, statementMs: 3_000 };
  await using query = await on.startQuery({ readers });
  const [written = 0] = await on.write([scenario().add({ kind: "source.added" })]);
  await reaches(query, written);
  await using owner = openDatabase({ url: on.databaseUrl, connections: 1 });
  const may = async (table: string) =>
    (
      await sql<{ may: boolean }>`select has_table_privilege('tapedeck_analyst', ${table}, 'select') as may`.execute(
        owner.db,
      )
    ).rows[0]?.may;
  expect([await may("tapedeck.sources"), await may("tapedeck_internal.checkpoint")]).toEqual([true, false]);
  const held = await sql`
    select setconfig as settings, has_function_privilege(setrole, 'pg_advisory_lock(bigint)', 'execute') as locks
    from pg_db_role_setting join pg_database on pg_database.oid = setdatabase
    where setrole = 'tapedeck_analyst'::regrole and datname = current_database()`.execute(owner.db);
  expect(held.rows).toEqual([{ settings: expect.arrayContaining(["statement_timeout=3000ms"]), locks: false }]);

  const { login, password } = await createLogin(owner, { workspace: "acme", limits: readers });
  try {
    const url = new URL(on.databaseUrl);
    url.username = login;
    url.password = password;
    await using reader = openDatabase({ url: url.href, connections: 1 });
    expect((await sql`select workspace from sources`.execute(reader.db)).rows).toEqual([{ workspace: "acme" }]);
    // The pool lifts statement_timeout for itself, as any client may.
    await expect(sql`select pg_sleep(600)`.execute(reader.db)).rejects.toThrow(/terminat/i);
  } finally {
    await dropLogin(owner, login);
  }
});

it("reports the position of the tables in its metrics", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  const script = scenario();
  script.session("S").started();
  const written = await on.write(script.events);
  await reaches(query, written.at(-1) ?? 0);
  const areThere = async () => {
    const metrics = await (await fetch(`http://${query.addresses.health}/metrics`)).text();
    expect(metrics).toMatch(/tapedeck_query_position\{.*\} 1\n/);
    expect(metrics).toMatch(/tapedeck_query_lag_events\{.*\} 0\n/);
    expect(metrics).toMatch(/nodejs_eventloop_lag_max_seconds\{service="query"\} \d/);
    expect(metrics).toMatch(/nodejs_eventloop_lag_p99_seconds\{service="query"\} \d/);
    return true;
  };
  await until(areThere, { message: "the metrics to say so" });
});
