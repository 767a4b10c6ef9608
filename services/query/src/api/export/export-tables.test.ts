import { asBuffer } from "@tapedeck/shared/as-buffer";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { zstd } from "@tapedeck/shared/log/batch/zstd";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { queryClient } from "../../testing/client.ts";
import { scenario } from "../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../testing/stage.ts";
import { exportTables } from "./export-tables.ts";

/** The day of scenarios. */
const day = "2026-11-20";
const cleanup = new AsyncDisposableStack();
let on: Stage;
let ask: ReturnType<typeof queryClient>;
let postgres: Client;

const of = (workspace: string, developer: string) => {
  const script = scenario(sourceName({ workspace, developer, project: "shop", upstream: "skaffold" }));
  const session = script.session(`01${workspace}${developer}`.toUpperCase());
  session.started();
  session.configured();
  session.loopStarted();
  session.build(`image-of-${developer}`, "started", 1_000);
  session.build(`image-of-${developer}`, "failed", 3_000);
  session.loopEnded("failed");
  return script.events;
};

beforeAll(async () => {
  on = cleanup.use(await stage());
  const readers = { ...on.config.readers, transactionMs: 5_000 };
  const query = cleanup.use(await on.startQuery({ readers }));
  const written = await on.write([...of("acme", "alice"), ...of("acme", "bob")]);
  const others = await on.writeIn("globex", of("globex", "carol"));
  await reaches(query, written.at(-1) ?? 0);
  await reaches(query, others.at(-1) ?? 0, "globex");
  ask = cleanup.use(queryClient(query.address));
  postgres = new Client(on.databaseUrl);
  await postgres.connect();
  cleanup.defer(() => postgres.end());
});
afterAll(() => cleanup.disposeAsync());

/** Rows by "table day", and all bytes as a text. */
async function exported(request: Parameters<typeof ask.exportTables>[0]) {
  const counts: Record<string, number> = {};
  let table = "";
  let text = "";
  for await (const { body } of ask.exportTables(request)) {
    if (body?.$case === "begin") table = `${body.value.table} ${body.value.day}`.trim();
    if (body?.$case === "compressed_rows")
      text += asBuffer(zstd.decompress(body.value.zstd, body.value.size)).toString("latin1");
    if (body?.$case === "end") counts[table] = Number(body.value.rows);
  }
  return { counts, text };
}

it("an export has the rows of the workspace and its days, and those of no other", async () => {
  const { counts, text } = await exported({ days: { from: day, to: "2026-11-21" } });
  expect(counts).toMatchObject({
    workspaces: 1,
    [`operations ${day}`]: 4,
    [`loops ${day}`]: 2,
    [`build_times ${day}`]: 2,
    [`failures ${day}`]: 2,
    [`build_times_daily ${day}`]: 2,
    "operations 2026-11-21": 0,
  });
  expect(text).toContain("image-of-alice");
  expect(text).toContain("image-of-bob");
  expect(text).not.toContain("carol");
});

it("an export of one developer has the rows of nobody else", async () => {
  const { counts, text } = await exported({ developer: "bob", days: { from: day, to: day } });
  expect(counts).toMatchObject({ [`operations ${day}`]: 2, [`failures ${day}`]: 1, [`build_times_daily ${day}`]: 1 });
  expect(text).toContain("image-of-bob");
  expect(text).not.toContain("alice");
  const ofNobody = await exported({ developer: "", days: { from: day, to: day } });
  expect(Object.values(ofNobody.counts).filter((count) => count > 0)).toEqual([1]);
});

it.each([
  ["2026-11-21", "2026-11-20", "to"],
  ["2026-02-31", "2026-11-20", "from"],
  ["2026-11-20", "tomorrow", "to"],
  ["2016-11-20", "2026-11-28", "from"],
])("an export from %s to %s is refused", async (from, to, field) => {
  const refused = await exported({ days: { from, to } }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(TapedeckError);
  expect(refused).toMatchObject({ code: "invalid_argument", details: { field } });
});

/** An export without a network, whose messages are made when they are taken. */
function directExport(of: ReturnType<typeof exportTables>, database: () => Database, more: object = {}) {
  const request = { workspace: "acme", days: { from: day, to: day }, ...more };
  return of({ workspace: "acme", database }, request, { signal: new AbortController().signal });
}

it("an export that is left between two copies holds no snapshot for longer than a day may take, and no place", async () => {
  await using database = openDatabase({ url: on.databaseUrl });
  const exporting = exportTables({ transactionMs: 1_500 });
  const open = () => directExport(exporting, () => database);
  const left = [open(), open()];
  for (const rows of left) expect((await rows.next()).value?.body?.$case).toBe("begin");
  expect(
    await open()
      .next()
      .catch((error: unknown) => error),
  ).toMatchObject({ code: "limit_exceeded" });
  await until(async () => (await transactions()) === 0, { message: "no transaction of an export" });
  expect((await Array.fromAsync(open())).at(-1)?.body).toMatchObject({ $case: "done", value: { day } });
  for (const rows of left) {
    expect(await Array.fromAsync(rows).catch((error: unknown) => error)).toMatchObject({
      message: expect.stringContaining("limits.sql.transaction"),
    });
  }
});

it("exports run again after the database was away", async () => {
  const exporting = exportTables({ transactionMs: 60_000 });
  const away = () => {
    throw new TapedeckError("not_ready", "the database is away");
  };
  for (let attempt = 0; attempt < 3; attempt++) {
    expect(
      await directExport(exporting, away)
        .next()
        .catch((error: unknown) => error),
    ).toMatchObject({ code: "not_ready" });
  }
  await using database = openDatabase({ url: on.databaseUrl });
  expect((await Array.fromAsync(directExport(exporting, () => database))).at(-1)?.body?.$case).toBe("done");
});

describe("with more rows than wait on the way, also when they are compressed", () => {
  beforeAll(async () => {
    await postgres.query(
      `insert into tapedeck.operations select (jsonb_populate_record(o, jsonb_build_object('id', 'more-' || n,
        'error', (select string_agg(md5(n || ' ' || part), '') from generate_series(1, 100) part)))).* from tapedeck.operations o, generate_series(1, 5000) n where kind = 'loop' and developer = 'bob'`,
    );
  });
  afterAll(async () => void (await postgres.query("delete from tapedeck.operations where id like 'more-%'")));

  it("an export that is left ends its copy in Postgres", async () => {
    const rows = ask.exportTables({ days: { from: day, to: day } })[Symbol.asyncIterator]();
    await rows.next();
    await until(async () => (await copies()) === 1, { message: "the copy to run" });
    await rows.return?.(undefined);
    await until(async () => (await copies()) === 0, { message: "no copy to run" });
  });

  it("an export whose rows are not read ends, and only so many run at a time", async () => {
    const days = { from: day, to: day };
    const begun = async () => {
      const rows = ask.exportTables({ days })[Symbol.asyncIterator]();
      await rows.next();
      return rows;
    };
    // An export that was left a moment ago may still have its place.
    const message = "a place for an export";
    const unread = [await until(begun, { message }), await until(begun, { message })];
    expect(await exported({ days }).catch((error: unknown) => error)).toMatchObject({
      code: "limit_exceeded",
      message: expect.stringContaining("2 exports of tables run already"),
    });
    await until(async () => (await copies()) === 0, { message: "no copy to run" });
    for (const rows of unread) {
      const read = async () => {
        while ((await rows.next()).done !== true);
      };
      expect(await read().catch((error: unknown) => error)).toMatchObject({
        code: "limit_exceeded",
        message: expect.stringContaining("limits.sql.transaction"),
      });
    }
    expect((await exported({ developer: "alice", days })).counts).toMatchObject({ [`operations ${day}`]: 2 });
  });

  it("the rows of a day may be read for longer than query may take for an answer", async () => {
    await using database = openDatabase({ url: on.databaseUrl, statementTimeoutMs: 100 });
    const rows = directExport(exportTables({ transactionMs: 60_000 }), () => database);
    for (let body = (await rows.next()).value?.body; body?.$case !== "compressed_rows" || (await copies()) === 0; ) {
      body = (await rows.next()).value?.body;
    }
    const isLong = "select 1 from pg_stat_activity where query like 'copy (select%' and now() - query_start > '300 ms'";
    await until(async () => (await postgres.query(isLong)).rowCount === 1, { message: "a copy that takes long" });
    expect((await Array.fromAsync(rows)).at(-1)?.body?.$case).toBe("done");
  });
});

async function transactions(): Promise<number> {
  const { rows } = await postgres.query(
    "select from pg_stat_activity where datname = current_database() and state = 'idle in transaction' and query like 'select * from % limit 0'",
  );
  return rows.length;
}

async function copies(): Promise<number> {
  const { rows } = await postgres.query(
    "select from pg_stat_activity where datname = current_database() and query like 'copy (select%' and state = 'active'",
  );
  return rows.length;
}
