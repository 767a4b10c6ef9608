import { randomBytes } from "node:crypto";
import { settingsReader } from "@tapedeck/shared/service/settings";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { type RawBuilder, sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ensurePartitions } from "../../views/events/partitions.ts";
import { type Database, openDatabase } from "../database.ts";
import { migrate } from "../migrate.ts";
import { letReadersIn } from "./grants.ts";
import { readerLimits } from "./limits.ts";
import { readable } from "./relations.ts";
import { analyst } from "./roles.ts";
import { teamSchema, teamViews } from "./team-views.ts";
import { createLogin, dropLogin } from "./workspace-logins.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
/** A login to which the analyst is granted. The analyst's own is for all databases of a server. */
const analysts = `analysts_${randomBytes(4).toString("hex")}`;
let url: string;
let ours: Database;
beforeAll(async () => {
  ({ url } = stack.use(await freshDatabase()));
  ours = stack.use(openDatabase({ url, connections: 3 }));
  await migrate(ours);
  expect(await letReadersIn(ours, "hidden")).toEqual([]);
  await fill(ours);
  const [role, password] = [sql.id(analysts), sql.lit("only reading")];
  await sql`create role ${role} login password ${password} in role ${sql.id(analyst)}`.execute(ours.db);
  stack.defer(async () => {
    await sql`drop role ${role}`.execute(ours.db);
  });
});

const samples: Readonly<Record<string, RawBuilder<unknown>>> = {
  "timestamp with time zone": sql`'2026-11-20T12:00:00Z'::timestamptz`,
  date: sql`'2026-11-19'::date`,
  bytea: sql`'\\x00'::bytea`,
  boolean: sql`false`,
  jsonb: sql`'{}'::jsonb`,
};

const people = ["acme/alice", "acme/bob", "globex/carol"];

/** A row of each developer in every table that may be read, with the name in every text. */
async function fill({ db }: Database): Promise<void> {
  await db.transaction().execute((tx) => ensurePartitions(tx, ["2026-11-20T12:00:00.000000Z"]));
  const { rows: columns } = await sql<{ table: string; column: string; type: string }>`
    select table_name as table, column_name as column, data_type as type from information_schema.columns
    where table_schema = 'tapedeck'`.execute(db);
  for (const table of Object.keys(readable).filter((name) => readable[name] !== "view")) {
    for (const [number, place] of people.entries()) {
      const [workspace = "", developer = ""] = place.split("/");
      const given: Readonly<Record<string, RawBuilder<unknown>>> = {
        source: sql.lit(`${place}/shop/skaffold`),
        workspace: sql.lit(workspace),
        project: sql.lit("shop"),
        upstream: sql.lit("skaffold"),
        kind: sql.lit("build"),
        epoch: sql.lit("epoch"),
        // The loops of this id are in red_times by a trigger, beside the row that is made here.
        id: sql.lit(`loop of ${developer}`),
        ...(table !== "sessions" && { outcome: sql.lit("failed") }),
        subject: sql.lit("web"),
        failed_phase: sql.lit("build"),
        reason: sql.lit("compile error"),
        waits: sql`'[]'::jsonb`,
        ...(table === "changed_build_days" && { day: sql`'2026-11-01'::date + ${sql.lit(number)}` }),
      };
      const own = columns.filter((column) => column.table === table);
      const values = own.map(
        ({ column, type }) =>
          given[column] ?? samples[type] ?? (type === "text" ? sql.lit(developer) : sql.lit(number + 1)),
      );
      const into = sql.join(own.map(({ column }) => sql.id(column)));
      await sql`insert into ${sql.table(table)} (${into}) values (${sql.join(values)})
        on conflict do nothing`.execute(db);
    }
  }
}

/** A rebuild names its schema so. */
const shadowSchema = "tapedeck_rebuild";
const limits = readerLimits(settingsReader({ env: {} }));

/** All that a login gets of every relation in both schemas, as text. */
async function seenBy(login: string, password: string): Promise<Readonly<Record<string, string>>> {
  const at = new URL(url);
  [at.username, at.password] = [login, password];
  const client = new pg.Client(at.href);
  await client.connect();
  try {
    const names = [
      ...Object.keys(readable).map((name) => `tapedeck.${name}`),
      ...Object.keys(teamViews).map((name) => `${teamSchema}.${name}`),
    ];
    const seen: Record<string, string> = {};
    for (const name of names)
      seen[name.replace(/^tapedeck[.]/, "")] = JSON.stringify((await client.query(`select * from ${name}`)).rows);
    return seen;
  } finally {
    await client.end();
  }
}

async function loginOf(developer?: string) {
  const made = await createLogin(ours, { workspace: "acme", developer, limits, mayGuessNames: true });
  stack.defer(async () => {
    await dropLogin(ours, made.login);
  });
  return made;
}

const ofNobody = ["changed_build_days", "expired_builds", "workspaces"];
const tables = Object.keys(readable).filter((name) => readable[name] !== "view" && !ofNobody.includes(name));
const ownWorkspace = JSON.stringify([{ workspace: "acme", epoch: "epoch" }]);

it("a login of a developer sees own rows in every table, and no other name in any relation", async () => {
  const { login, password } = await loginOf("alice");
  const seen = await seenBy(login, password);
  for (const name of tables) expect([name, seen[name]]).toEqual([name, expect.stringContaining("alice")]);
  expect(JSON.stringify(seen)).not.toMatch(/bob|carol/);
  expect(seen).toMatchObject({ changed_build_days: "[]", expired_builds: "[]", workspaces: ownWorkspace });
});

it("a login of no developer, and the analyst, have rows of the sums only", async () => {
  const { login, password } = await loginOf();
  const logins = [
    { seen: await seenBy(login, password), workspaces: ownWorkspace },
    { seen: await seenBy(analysts, "only reading"), workspaces: "[]" },
  ];
  for (const { seen, workspaces } of logins) {
    for (const name of Object.keys(readable))
      expect([name, seen[name]]).toEqual([name, name === "workspaces" ? workspaces : "[]"]);
    expect(JSON.stringify(seen)).not.toMatch(/alice|bob|carol/);
  }
});

it("the sums count everybody of the login's workspace; the analyst's, of all workspaces", async () => {
  const sums = async (login: string, password: string) => {
    const seen = await seenBy(login, password);
    return Object.keys(teamViews).map((name) => JSON.parse(seen[`${teamSchema}.${name}`] ?? ""));
  };
  const own = { workspace: "acme", project: "shop" };
  const { login, password } = await loginOf("alice");
  const acme = [
    [{ ...own, artifact: "web", builds: "2", failed: "2" }],
    [{ ...own, loops: "2", developers: "2", failed: "2" }],
    [{ ...own, phase: "build", reason: "compile error", failures: "2", developers: "2" }],
  ];
  expect(await sums(login, password)).toMatchObject(acme);
  const all = await sums(analysts, "only reading");
  expect(all.map((rows) => rows.map(({ workspace }: { readonly workspace: string }) => workspace).toSorted())).toEqual(
    acme.map(() => ["acme", "globex"]),
  );
});

it("a function in a reader's condition gets no row of the sums that is not the reader's", async () => {
  const { login, password } = await loginOf();
  const at = new URL(url);
  [at.username, at.password] = [login, password];
  const client = new pg.Client(at.href);
  await client.connect();
  // Division by zero for a workspace that is not its own: an error would say that there is one.
  const query = `select count(*)::int as count from ${teamSchema}.loops_daily where 1 / (workspace <> 'globex')::int = 1`;
  expect((await client.query(query)).rows).toEqual([{ count: 1 }]);
  await client.end();
});

it("tables that are made anew hide developers as the old ones do, and shown again everybody sees all", async () => {
  await using shadow = openDatabase({ url, schema: shadowSchema, connections: 3 });
  await migrate(shadow);
  await letReadersIn(shadow);
  const policies = async (schema: string) => {
    const { rows } = await sql<{ name: string }>`
      select distinct policyname as name from pg_policies where schemaname = ${schema} order by 1`.execute(ours.db);
    return rows.map(({ name }) => name);
  };
  expect(await policies(shadowSchema)).toEqual(["tapedeck_reader_own"]);
  expect(await letReadersIn(ours, "shown")).toEqual([]);
  expect(await policies("tapedeck")).toEqual(["tapedeck_analyst", "tapedeck_reader"]);
  const { rows } = await sql`select from pg_namespace where nspname = ${teamSchema}`.execute(ours.db);
  expect(rows).toEqual([]);
  expect(await letReadersIn(ours)).toEqual([]);
  expect(await policies("tapedeck")).toEqual(["tapedeck_analyst", "tapedeck_reader"]);
});
