import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Postgres, startPostgres } from "@tapedeck/infra/local/postgres";
import { logStart } from "@tapedeck/shared/log/offset";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { settingsReader } from "@tapedeck/shared/service/settings";
import { type RawBuilder, sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { docsPage, documentedQueries, pagesWithQueries } from "../../testing/documented-queries.ts";
import { ensurePartitions } from "../../views/events/partitions.ts";
import { type Database, openDatabase } from "../database.ts";
import { migrate } from "../migrate.ts";
import { letReadersIn, limitReaders } from "./grants.ts";
import { type ReaderLimits, readerLimits } from "./limits.ts";
import { ownLogin } from "./own-logins.ts";
import { readable } from "./relations.ts";
import { endOverdue, watchReaders } from "./watch-readers.ts";
import { createLogin, dropLogin, logins } from "./workspace-logins.ts";

const limits = readerLimits(settingsReader({ env: {} }));
const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** A server of this test's own, because roles belong to the whole server. */
let server: Postgres;
let ours: Database;
let url: string;
beforeAll(async () => {
  const dataDir = join(inject("serversFolder"), `postgres-${randomBytes(6).toString("hex")}`);
  server = await startPostgres({ dataDir, port: 0, persistent: false, fsync: false });
  stack.defer(() => server.stop());
  await server.ensureDatabase("tapedeck");
  url = server.url("tapedeck");
  ours = stack.use(openDatabase({ url }));
  await migrate(ours);
  expect(await letReadersIn(ours)).toEqual([]);
  expect(await limitReaders(ours, { analystPassword: "only reading", limits })).toEqual([]);
  await fill(ours);
});

/** Connected as a role. */
async function as(login: string, password = "only reading", database = "tapedeck"): Promise<pg.Client> {
  const at = new URL(server.url(database));
  at.username = login;
  at.password = password;
  const client = new pg.Client(at.href);
  client.on("error", () => {}); // it may be ended under our hands
  await client.connect();
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

/** Relations in a schema. */
async function names(database: Database, schema: string): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relnamespace = ${schema}::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')`.execute(database.db);
  return rows.map(({ name }) => name);
}

const samples: Readonly<Record<string, RawBuilder<unknown>>> = {
  "timestamp with time zone": sql`'2026-11-20T12:00:00Z'::timestamptz`,
  // No day of the operations, which is marked already.
  date: sql`'2026-11-19'::date`,
  bytea: sql`'\\x00'::bytea`,
  boolean: sql`false`,
  jsonb: sql`'{}'::jsonb`,
};

/** A row of each of two workspaces in every table that may be read, whatever columns it has. */
async function fill({ db }: Database): Promise<void> {
  await db.transaction().execute((tx) => ensurePartitions(tx, ["2026-11-20T12:00:00.000000Z"]));
  const { rows: columns } = await sql<{ table: string; column: string; type: string }>`
    select table_name as table, column_name as column, data_type as type from information_schema.columns
    where table_schema = 'tapedeck'`.execute(db);
  const tables = Object.keys(readable).filter((name) => readable[name] !== "view");
  for (const table of tables) {
    for (const [number, workspace] of ["acme", "globex"].entries()) {
      for (const { kind, upstream = "skaffold", outcome = "failed", loop = 1 } of rowsOf[table] ?? [{ kind: "any" }]) {
        const given: Readonly<Record<string, RawBuilder<unknown>>> = {
          source: sql.lit(`${workspace}/alice/shop/${upstream}`),
          workspace: sql.lit(workspace),
          session: sql.lit(workspace),
          upstream: sql.lit(upstream),
          kind: sql.lit(kind),
          outcome: sql.lit(outcome),
          waits: sql`'[]'::jsonb`,
          loop: sql.lit(loop),
          id: sql.lit(`${workspace} ${kind} ${loop}`),
        };
        const own = columns.filter((column) => column.table === table);
        const values = own.map(
          ({ column, type }) =>
            given[column] ?? samples[type] ?? (type === "text" ? sql.lit(workspace) : sql.lit(number + 1)),
        );
        const into = sql.join(own.map(({ column }) => sql.id(column)));
        await sql`insert into ${sql.table(table)} (${into}) values (${sql.join(values)})`.execute(db);
      }
    }
  }
}

type FilledRow = {
  readonly kind: string;
  readonly upstream?: string;
  readonly outcome?: string;
  readonly loop?: number;
};

/** What each view needs to have a row. */
const rowsOf: Readonly<Record<string, readonly FilledRow[]>> = {
  operations: [
    { kind: "loop" },
    { kind: "build" },
    { kind: "build", outcome: "succeeded", loop: 2 },
    { kind: "command", upstream: "vagrant" },
    { kind: "pod", upstream: "rkt" },
  ],
};

const workspacesSeen = async (client: pg.Client, name: string): Promise<readonly string[]> => {
  const whose = readable[name] === "source" ? "split_part(source, '/', 1)" : "workspace";
  const { rows } = await client.query<{ workspace: string }>(
    `select distinct ${whose} as workspace from tapedeck.${name} order by 1`,
  );
  return rows.map(({ workspace }) => workspace);
};

const unqualified = "pg_table_is_visible(c.oid) and nspname not in ('pg_catalog', 'information_schema')";

/** What tools for SQL list, without regard to rights, as \\d and \\df of psql do, and as others do for each schema. */
const lists = {
  relations: [unqualified, "nspname = 'tapedeck'"].map(
    (condition) => `select relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
      where relkind in ('r', 'p', 'v', 'm', 'S', 'f') and ${condition} order by 1`,
  ),
  functions: [
    "pg_function_is_visible(p.oid) and nspname not in ('pg_catalog', 'information_schema')",
    "nspname = 'tapedeck'",
  ].map(
    (condition) =>
      `select proname as name from pg_proc p join pg_namespace n on n.oid = pronamespace where ${condition} order by 1`,
  ),
};

it.each(["the analyst", "a login of a workspace"])(
  "tools list to %s what it may read, and nothing else",
  async (who) => {
    const made = who === "the analyst" ? undefined : await createLogin(ours, { workspace: "acme", limits });
    const client = await as(made?.login ?? "tapedeck_analyst", made?.password);
    const listed = async (query: string) => (await client.query<{ name: string }>(query)).rows.map(({ name }) => name);
    for (const query of lists.relations) expect(await listed(query)).toEqual(Object.keys(readable).toSorted());
    for (const name of Object.keys(readable)) await client.query(`select from ${name} limit 1`);
    for (const query of lists.functions) expect(await listed(query)).toEqual(["position_text"]);
    await client.query("select position_text(1, 'acme')");
    if (made !== undefined) await dropLogin(ours, made.login);
  },
);

it("a login of a workspace that was removed sees nothing, before its rows are deleted", async () => {
  const login = await createLogin(ours, { workspace: "globex", limits });
  const client = await as(login.login, login.password);
  const count = async () => (await client.query("select count(*)::int from operations")).rows[0].count;
  const { db } = ours;
  await db
    .insertInto("checkpoint")
    .values({ ...checkpoint, workspace: "globex" })
    .execute();
  expect(await count()).toBeGreaterThan(0);
  await db.updateTable("checkpoint").set({ removed: true }).where("workspace", "=", "globex").execute();
  expect(await count()).toBe(0);
  await db.deleteFrom("checkpoint").where("workspace", "=", "globex").execute();
  expect(await count()).toBeGreaterThan(0);
  await dropLogin(ours, login.login);
});

const checkpoint = {
  projection: "1",
  epoch: "aaaaaa",
  position: logStart,
  applied_position: null,
  recorded_until_ms: null,
  removed: false,
};

it("docs/sql.md lists exactly the relations that readers may read", async () => {
  const listed = [...(await docsPage("sql.md")).matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = ""]) =>
    cell.split(", "),
  );
  expect(listed.map((name) => name.replaceAll("`", "")).toSorted()).toEqual(Object.keys(readable).toSorted());
});

it.each(pagesWithQueries)("the analyst can run every query of docs/%s", async (page) => {
  const queries = await documentedQueries(page);
  expect(queries).not.toEqual([]);
  const analyst = await as("tapedeck_analyst");
  for (const query of queries) await expect(analyst.query(query), query).resolves.toBeDefined();
});

it("the analyst reads all documented relations of every workspace, and nothing else", async () => {
  const analyst = await as("tapedeck_analyst");
  for (const name of Object.keys(readable)) {
    expect([name, await workspacesSeen(analyst, name)]).toEqual([name, ["acme", "globex"]]);
  }
  const internal = await names(ours, "tapedeck_internal");
  expect(internal).toEqual(expect.arrayContaining(["checkpoint", "events_2026_11"]));
  for (const name of [...internal.map((one) => `tapedeck_internal.${one}`), "tapedeck_private.workspace_logins"]) {
    await expect(analyst.query(`select * from ${name}`)).rejects.toThrow("permission denied");
  }
});

it("grants that others gave are revoked, and a second run changes nothing", async () => {
  const name = sql.id("tapedeck_analyst");
  await sql`create table notes (note text)`.execute(ours.db);
  onTestFinished(async () => void (await sql`drop table notes`.execute(ours.db)));
  await sql`grant select on all tables in schema tapedeck to ${name}`.execute(ours.db);
  await sql`alter default privileges in schema tapedeck grant select on tables to ${name}`.execute(ours.db);
  await letReadersIn(ours);
  const analyst = await as("tapedeck_analyst");
  await sql`create table later (note text)`.execute(ours.db);
  onTestFinished(async () => void (await sql`drop table later`.execute(ours.db)));
  for (const table of ["notes", "later"]) {
    await expect(analyst.query(`select * from ${table}`)).rejects.toThrow("permission denied");
  }
  const rights = async () =>
    (
      await sql`select relname, relacl::text, xmin::text from pg_class where relnamespace = 'tapedeck'::regnamespace`.execute(
        ours.db,
      )
    ).rows;
  const before = await rights();
  await letReadersIn(ours);
  expect(await rights()).toEqual(before);
});

it.each([
  "delete from sources",
  "create table mine (a int)",
  "create table public.mine (a int)",
  "create temporary table mine (a int)",
  "create schema mine",
  "begin; lock table sources in share mode",
  "select pg_advisory_lock(1)",
  "select pg_try_advisory_xact_lock_shared(1, 2)",
  "select lo_create(0)",
  "select lo_from_bytea(0, 'much')",
  "select loread(0, 1)",
  "select lowrite(0, 'much')",
  "select pg_export_snapshot()",
  "select pg_logical_emit_message(false, 'a', 'b')",
  "set temp_file_limit = -1",
  "select tapedeck_private.reader_workspace()",
])("the analyst may not: %s", async (statement) => {
  const analyst = await as("tapedeck_analyst");
  await analyst.query("set default_transaction_read_only = off");
  await expect(analyst.query(statement)).rejects.toThrow(/permission denied|no schema has been selected/);
});

it("no login can connect to another database of Tapedeck's own server", async () => {
  for (const database of ["postgres", "template1"]) {
    await expect(as("tapedeck_analyst", "only reading", database)).rejects.toThrow("permission denied for database");
  }
});

describe("a login of a workspace", () => {
  it("sees its own rows in every relation, whatever it does, and goes when it is dropped", async () => {
    const made = await createLogin(ours, { workspace: "acme", limits });
    expect(made).toMatchObject({ workspace: "acme", leftOut: [] });
    expect(made.login).not.toContain("acme");
    const login = await as(made.login, made.password);
    for (const name of Object.keys(readable)) {
      expect([name, await workspacesSeen(login, name)]).toEqual([name, ["acme"]]);
    }
    await login.query("set row_security = off");
    await expect(login.query("select * from events")).rejects.toThrow("row-level security");
    await login.query("set row_security = on");
    for (const name of ["tapedeck_internal.checkpoint", "tapedeck_private.workspace_logins"]) {
      await expect(login.query(`select * from ${name}`)).rejects.toThrow("permission denied");
    }
    for (const role of ["tapedeck_analyst", "postgres"]) {
      await expect(login.query(`set role ${role}`)).rejects.toThrow("permission denied");
    }
    await expect(login.query("select lo_create(0)")).rejects.toThrow("permission denied");

    const [listed] = await logins(ours);
    expect(listed).toMatchObject({ login: made.login, workspace: "acme" });
    expect(await dropLogin(ours, "tapedeck_analyst")).toBeUndefined();
    expect(await dropLogin(ours, made.login)).toEqual(listed);
    await expect(login.query("select 1")).rejects.toThrow();
    expect(await logins(ours)).toEqual([]);
  });

  it("sees nothing through a login that it was granted to, nor of a workspace without rows", async () => {
    const made = await createLogin(ours, { workspace: "acme", limits });
    await sql`create role bob login in role ${sql.id(made.login)}`.execute(ours.db);
    const bob = await as("bob");
    expect((await bob.query("select * from tapedeck.events")).rows).toEqual([]);
    const none = await createLogin(ours, { workspace: "initech", limits });
    expect(await workspacesSeen(await as(none.login, none.password), "sessions")).toEqual([]);
  });

  it("is made once for query itself, and again when somebody has dropped it", async () => {
    const before = (await logins(ours)).length;
    const own = () => ownLogin(ours, { workspace: "globex", limits });
    const [first, second] = await Promise.all([own(), own()]);
    expect(second).toEqual(first);
    expect(await workspacesSeen(await ours.connect({ login: first }), "sessions")).toEqual(["globex"]);
    await dropLogin(ours, first.user);
    const again = await own();
    expect(again.user).not.toBe(first.user);
    expect(await workspacesSeen(await ours.connect({ login: again }), "sessions")).toEqual(["globex"]);
    expect(await logins(ours)).toHaveLength(before + 1);
    await dropLogin(ours, again.user);
  });

  it("learns nothing of other workspaces by its own conditions: not by EXPLAIN, estimates or counters", async () => {
    const made = await createLogin(ours, { workspace: "globex", limits });
    await sql`analyze`.execute(ours.db);
    const login = await as(made.login, made.password);
    const { rows: columns } = await sql<{ table: string; column: string; type: string }>`
      select table_name as table, column_name as column, data_type as type from information_schema.columns
      where table_schema = 'tapedeck' and table_name = any(${Object.keys(readable)})
        and data_type in ('text', 'bigint')`.execute(ours.db);
    // Postgres takes an index wherever a condition may use one.
    for (const way of ["seqscan", "bitmapscan"]) await login.query(`set enable_${way} = off`);
    const read = async () => {
      const { rows } = await login.query<{ read: string }>(
        `select coalesce(sum(idx_tup_fetch + seq_tup_read), 0) as read from pg_stat_xact_user_tables
         where schemaname in ('tapedeck', 'tapedeck_internal')`,
      );
      return Number(rows[0]?.read);
    };
    /** Everything that the reader is shown, but for the condition that it wrote itself. */
    const learned = async (table: string, condition: string) => {
      await login.query("begin");
      const before = await read();
      const { rows } = await login.query<{ "QUERY PLAN": unknown }>(
        `explain (analyze, timing off, summary off, format json) select 1 from tapedeck.${table} where ${condition}`,
      );
      const counted = (await read()) - before;
      await login.query("rollback");
      const isOwn = (key: string) => /(Cond|Key|Filter)$/.test(key) && !key.includes("Removed");
      const isCache = (key: string) => /Blocks$|^Planning/.test(key);
      const plan = JSON.stringify(rows[0], (key, value) => (isOwn(key) || isCache(key) ? undefined : value));
      return { table, plan, counted };
    };
    let compared = 0;
    for (const { table, column, type } of columns) {
      const within = (first: string, last: string) => `${column} >= '${first}' and ${column} < '${last}'`;
      const [theirs, nobodys] =
        type === "text" ? [within("acm", "acn"), within("qqm", "qqn")] : [within("1", "2"), within("77", "78")];
      const { rowCount: own } = await login.query(`select from tapedeck.${table} where ${theirs} or ${nobodys}`);
      if (own !== 0) continue;
      compared++;
      expect(await learned(table, theirs)).toEqual(await learned(table, nobodys));
    }
    expect(compared).toBeGreaterThan(150);
  });
});

describe("limits", () => {
  it("are those of the settings, and a change applies at the next start", async () => {
    const made = await createLogin(ours, { workspace: "acme", limits });
    const shown = async (login: string, password: string) => {
      const client = await as(login, password);
      const { rows } = await client.query<{ setting: string }>(
        "select setting from pg_settings where name = any($1) order by name",
        [
          [
            "idle_in_transaction_session_timeout",
            "lock_timeout",
            "statement_timeout",
            "temp_file_limit",
            "transaction_timeout",
            "default_transaction_read_only",
          ],
        ],
      );
      return rows.map(({ setting }) => setting);
    };
    const shownLimits = ["on", "60000", "5000", "60000", "1048576", "600000"];
    expect(await shown("tapedeck_analyst", "only reading")).toEqual(shownLimits);
    expect(await shown(made.login, made.password)).toEqual(shownLimits);
    const other: ReaderLimits = { ...limits, connections: 2, statementMs: 1_500, tempBytes: 2 * 1024 ** 2 };
    await limitReaders(ours, { analystPassword: "only reading", limits: other });
    expect(await shown(made.login, made.password)).toEqual(["on", "60000", "5000", "1500", "2048", "600000"]);
    await expect(as(made.login, made.password)).rejects.toThrow("too many connections for role");
    await limitReaders(ours, { analystPassword: "only reading", limits });
  });

  it.each<[what: string, statement: string, tight: Partial<ReaderLimits>]>([
    ["a statement", "select pg_sleep(600)", { statementMs: 1_000 }],
    [
      "a statement that catches its end",
      "do $$ begin loop begin perform pg_sleep(600); exception when query_canceled then null; end; end loop; end $$",
      { statementMs: 1_000 },
    ],
    ["a transaction that is idle", "begin; select 1", { idleTransactionMs: 1_000 }],
    ["a transaction", "begin; select 1", { transactionMs: 1_000 }],
  ])("a reader that lifts them is ended all the same: %s", async (_, statement, tight) => {
    const analyst = await as("tapedeck_analyst");
    const over = new Promise((resolve) => analyst.once("end", resolve));
    for (const name of ["statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"]) {
      await analyst.query(`set ${name} = 0`);
    }
    await using _watch = watching(ours, { ...limits, ...tight });
    analyst.query(statement).catch(() => {});
    await over;
  });

  it("readers are checked again when the first of them can be overdue", async () => {
    const nextMs = async () => (await endOverdue(ours, { ...limits, idleTransactionMs: 30_000 })).nextMs;
    const analyst = await as("tapedeck_analyst");
    expect(await nextMs()).toBe(31_000);
    await analyst.query("begin");
    const began = await nextMs();
    expect(began).toBeLessThan(31_000);
    expect(began).toBeGreaterThan(5_000);
    await analyst.query("commit");
    expect(await nextMs()).toBe(31_000);
  });
});

describe("with a Postgres of the user's, whose owner of the database is no superuser", () => {
  it("logins have the limits that the database user may set, and the others are reported", async () => {
    const owner = sql.id("owner");
    await sql`create role ${owner} login createrole`.execute(ours.db);
    await sql`create database theirs owner ${owner}`.execute(ours.db);
    const at = new URL(server.url("theirs"));
    at.username = "owner";
    await using theirs = openDatabase({ url: at.href, connections: 3 });
    await migrate(theirs);
    // Both roles were made by another one, such as an administrator of this Postgres.
    for (const role of ["tapedeck_analyst", "tapedeck_reader"]) {
      await sql`grant ${sql.id(role)} to ${owner} with admin option, inherit false`.execute(ours.db);
    }
    expect(await letReadersIn(theirs)).toEqual([]);
    expect(await limitReaders(theirs, { analystPassword: "only reading", limits })).toEqual([
      expect.stringMatching(/^advisory locks and large objects/),
      expect.stringMatching(/^names of other workspaces/),
      "temp_file_limit of tapedeck_analyst",
    ]);
    await fill(theirs);
    await expect(createLogin(theirs, { workspace: "globex", limits })).rejects.toThrow(
      "EXPLAIN would let this login guess names of other workspaces",
    );
    expect(await logins(theirs)).toEqual([]);
    const made = await createLogin(theirs, { workspace: "globex", limits, mayGuessNames: true });
    expect(made.leftOut).toEqual(["temp_file_limit"]);
    const login = await as(made.login, made.password, "theirs");
    for (const name of Object.keys(readable)) {
      expect([name, await workspacesSeen(login, name)]).toEqual([name, ["globex"]]);
    }
    await login.query("set statement_timeout = 0");
    const over = new Promise((resolve) => login.once("end", resolve));
    {
      await using _watch = watching(theirs, { ...limits, statementMs: 1_000 });
      login.query("select pg_sleep(600)").catch(() => {});
      await over;
    }
    expect(await dropLogin(theirs, made.login)).toMatchObject({ login: made.login });
  });

  it("flaky_artifacts finds each next build by index for every role that row security does not restrict", async () => {
    await sql`create role keeper login createrole`.execute(ours.db);
    await sql`create database kept owner keeper`.execute(ours.db);
    const at = new URL(server.url("kept"));
    at.username = "keeper";
    await using kept = openDatabase({ url: at.href, connections: 3 });
    await migrate(kept);
    await sql`grant tapedeck_analyst, tapedeck_reader to keeper with admin option, inherit false`.execute(ours.db);
    await letReadersIn(kept);
    await fill(kept);
    const made = await createLogin(kept, { workspace: "globex", limits, mayGuessNames: true });
    await sql`grant tapedeck_reader to ${sql.id(made.login)} with inherit false granted by keeper`.execute(ours.db);
    await sql`create role mixed login in role tapedeck_analyst, tapedeck_reader`.execute(ours.db);
    await sql`create role apart login in role tapedeck_analyst`.execute(ours.db);
    await sql`grant tapedeck_reader to apart with inherit false`.execute(ours.db);

    const [one, all] = [["globex"], ["acme", "globex"]];
    const seenBy = async (login: string, role?: string) => {
      const client = await as(login, login === made.login ? made.password : "only reading", "kept");
      if (role !== undefined) await client.query(`set role ${role}`);
      return [await workspacesSeen(client, "flaky_artifacts"), await sortsBuilds(client)];
    };
    expect(await seenBy("postgres")).toEqual([all, false]);
    expect(await seenBy("keeper")).toEqual([all, false]);
    expect(await seenBy("keeper", "tapedeck_analyst")).toEqual([all, false]);
    expect(await seenBy("keeper", "tapedeck_reader")).toEqual([[], true]);
    expect(await seenBy("mixed")).toEqual([all, false]);
    expect(await seenBy("apart")).toEqual([all, false]);
    expect(await seenBy("apart", "tapedeck_reader")).toEqual([[], true]);
    await expect(seenBy(made.login)).rejects.toThrow("permission denied");
    expect(await seenBy(made.login, "tapedeck_reader")).toEqual([one, true]);
  });

  it("a login can read names letter by letter from plans until a superuser runs the documented statement", async () => {
    await sql`create role landlord login createrole`.execute(ours.db);
    await sql`create database guarded owner landlord`.execute(ours.db);
    const at = new URL(server.url("guarded"));
    at.username = "landlord";
    await using guarded = openDatabase({ url: at.href, connections: 3 });
    await migrate(guarded);
    for (const role of ["tapedeck_analyst", "tapedeck_reader"]) {
      await sql`grant ${sql.id(role)} to landlord with admin option, inherit false`.execute(ours.db);
    }
    await letReadersIn(guarded);
    await fill(guarded);
    const warned = await createLogin(guarded, { workspace: "globex", limits, mayGuessNames: true });
    expect(await guessedSource(await as(warned.login, warned.password, "guarded"))).toBe("acme");

    await using superuser = openDatabase({ url: server.url("guarded"), connections: 1 });
    const [statement = ""] = /^do \$\$.*?^end \$\$/ms.exec(await docsPage("team.md")) ?? [];
    await sql.raw(statement).execute(superuser.db);
    const { login, password } = await createLogin(guarded, { workspace: "globex", limits });
    expect(await guessedSource(await as(login, password, "guarded"))).toBe("");
  });

  it("a shared database keeps the rights of PUBLIC, and shows no names of other workspaces in plans", async () => {
    await server.ensureDatabase("shared");
    await using shared = openDatabase({ url: server.url("shared"), connections: 3 });
    await sql`create table public.invoices (id int)`.execute(shared.db);
    await migrate(shared);
    await letReadersIn(shared);
    expect(await limitReaders(shared, { analystPassword: "only reading", limits })).toEqual([
      expect.stringMatching(/^what PUBLIC may do, because others have tables in this database/),
    ]);
    // This takes no right from anybody.
    expect((await sql`select from pg_proc where proleakproof`.execute(shared.db)).rows).toEqual([]);
    const analyst = await as("tapedeck_analyst", "only reading", "shared");
    await analyst.query("select pg_try_advisory_xact_lock(1)");
  });

  it("a database user that may not create roles gets an error", async () => {
    await sql`create role poor login`.execute(ours.db);
    await sql`create database poors owner poor`.execute(ours.db);
    const at = new URL(server.url("poors"));
    at.username = "poor";
    await using poors = openDatabase({ url: at.href, connections: 3 });
    await migrate(poors);
    await expect(createLogin(poors, { workspace: "acme", limits })).rejects.toThrow("may not make roles (CREATEROLE)");
  });
});

type Plan = { readonly "Node Type": string; readonly "Actual Loops": number; readonly Plans?: readonly Plan[] };

/** Whether flaky_artifacts puts all builds in order, and does not look up each next one. */
async function sortsBuilds(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
    "explain (analyze, format json) select * from tapedeck.flaky_artifacts",
  );
  const isRun = (plan: Plan): boolean =>
    (plan["Node Type"] === "WindowAgg" && plan["Actual Loops"] > 0) || (plan.Plans ?? []).some(isRun);
  return rows.some(({ "QUERY PLAN": [{ Plan: plan }] }) => isRun(plan));
}

/** What a login finds out of the names of others' sources, as "Rows Removed by Filter" shows. */
async function guessedSource(login: pg.Client): Promise<string> {
  const removed = async (first: string, last: string) => {
    const { rows } = await login.query<{ "QUERY PLAN": string }>(
      `explain (analyze, timing off, summary off) select source from tapedeck.sources
       where source >= '${first}' and source < '${last}' order by source`,
    );
    return rows.flatMap(({ "QUERY PLAN": line }) => /Rows Removed by Filter: \d+/.exec(line) ?? []).join();
  };
  // Then the index of the names is the only way.
  for (const way of ["seqscan", "bitmapscan", "sort"]) await login.query(`set enable_${way} = off`);
  const ofNobody = await removed("~", "~~");
  let found = "";
  while (found.length < "acme".length) {
    // Not g, which its own workspace begins with.
    const next = await firstOf([..."abcdefhijklmnopqrstuvwxyz"], (letter) =>
      removed(`${found}${letter}`, `${found}${String.fromCharCode(letter.charCodeAt(0) + 1)}`).then(
        (one) => one !== ofNobody,
      ),
    );
    if (next === undefined) return found;
    found += next;
  }
  return found;
}

async function firstOf<T>(all: readonly T[], is: (one: T) => Promise<boolean>): Promise<T | undefined> {
  for (const one of all) if (await is(one)) return one;
  return undefined;
}

function watching(database: Database, tight: ReaderLimits): AsyncDisposable {
  const stop = new AbortController();
  const over = watchReaders({ database, limits: tight, logger: silentLogger, signal: stop.signal });
  return {
    [Symbol.asyncDispose]: () => {
      stop.abort();
      return over;
    },
  };
}
