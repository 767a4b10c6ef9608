import { randomBytes } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { letReadersIn } from "@tapedeck/query/db/access/grants";
import { migrate } from "@tapedeck/query/db/migrate";
import { openDatabase } from "@tapedeck/query/for-cli/maintain";
import { endOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { connect } from "nats";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { auditEntries } from "../../testing/audit.ts";
import { startCli } from "../../testing/cli.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let cwd: string;
let url: string;
let nats: TestNats;

/** A folder without a Tapedeck, and a Postgres and a NATS that its settings name. */
beforeAll(async () => {
  cwd = await mkdtemp(join(inject("serversFolder"), "sql-roles-"));
  ({ url } = stack.use(await freshDatabase()));
  nats = stack.use(await startTestNats());
  const database = stack.use(openDatabase({ url, connections: 3 }));
  await migrate(database);
  await letReadersIn(database);
});

async function sqlRole(args: readonly string[], more: Record<string, string> = {}) {
  const named = { TAPEDECK_POSTGRES_URL: url, TAPEDECK_NATS_URL: nats.url };
  await using cli = startCli(["sql-role", ...args], { cwd, env: { ...named, ...more } });
  const code = await cli.ended;
  return { code, out: cli.stdout(), err: cli.stderr() };
}

it("a login that is made reads its workspace, is written once, listed without its password, and dropped", async () => {
  expect((await sqlRole(["list"])).out).toBe("There are no workspace logins.\n");
  const made = await sqlRole(["create", "--workspace", "Acme"]);
  expect(made).toMatchObject({ code: 0, err: expect.stringContaining("reads workspace acme") });
  expect(made.err).toContain("Nothing has been recorded in workspace acme yet.\n");
  const address = new URL(made.out.trim());
  const { username: login } = address;
  {
    await using reader = openDatabase({ url: address.href, connections: 1 });
    expect(await reader.db.selectFrom("sources").selectAll().execute()).toEqual([]);
    const internal = reader.db.withSchema("tapedeck_internal");
    await expect(internal.selectFrom("checkpoint").selectAll().execute()).rejects.toThrow("permission denied");
  }
  const list = await sqlRole(["list"]);
  expect(list.out).toMatch(new RegExp(`${login}\\s+acme\\s+-\\s+\\d{4}-\\d\\d-\\d\\d`));
  expect(list.out).not.toContain(address.password);
  const { items } = JSON.parse((await sqlRole(["list", "--json"])).out) as { items: object[] };
  expect(items).toEqual([{ login, workspace: "acme", developer: null, createdAt: expect.stringMatching(/Z$/) }]);

  expect(await sqlRole(["drop", login])).toMatchObject({ code: 0, out: `dropped ${login} (workspace acme)\n` });
  const none = `tapedeck: there is no workspace login ${login}: see \`tapedeck sql-role list\`.\n`;
  expect(await sqlRole(["drop", login])).toEqual({ code: 1, out: "", err: none });
});

it("logins that are made and dropped are in the audit log, without their passwords", async () => {
  const { login, password } = JSON.parse((await sqlRole(["create", "--workspace", "initech", "--json"])).out);
  await sqlRole(["drop", login]);
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const entries = (await auditEntries(connection)).filter(({ workspace }) => workspace === "initech");
  const entry = {
    who: expect.stringMatching(/^\S+ on this machine$/),
    kind: "local",
    workspace: "initech",
    about: { login },
  };
  expect(entries).toEqual([
    { ...entry, action: "sql-role.created" },
    { ...entry, action: "sql-role.dropped" },
  ]);
  expect(JSON.stringify(entries)).not.toContain(password);
});

it.each([
  ["no NATS is named", { TAPEDECK_NATS_URL: "" }, /the settings name no NATS \(nats.url\)/],
  ["NATS is away", { TAPEDECK_NATS_URL: "127.0.0.1:1" }, /NATS at 127.0.0.1:1 can't be reached/],
  ["a setting of NATS is wrong", { TAPEDECK_NATS_REPLICAS: "many" }, /TAPEDECK_NATS_REPLICAS: "many" is not a whole/],
])("a login is made where %s, and it is said that the audit log lacks it", async (_what, more, reason) => {
  const made = await sqlRole(["create", "--workspace", "acme", "--quiet"], more);
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^postgres/) });
  expect(made.err).toMatch(/^tapedeck: this action is missing from the audit log: /);
  expect(made.err).toMatch(reason);
  expect(await sqlRole(["drop", new URL(made.out).username])).toMatchObject({ code: 0, err: "" });
});

it("a login is made also before there are tables, and for what is recorded without a remark", async () => {
  await using empty = await freshDatabase();
  const early = await sqlRole(["create", "--workspace", "acme"], { TAPEDECK_POSTGRES_URL: empty.url });
  expect(early).toMatchObject({
    code: 0,
    err: expect.stringContaining("Nothing has been recorded in workspace acme yet."),
  });
  await using database = openDatabase({ url: empty.url, connections: 1 });
  await migrate(database);
  const source = {
    workspace: "initech",
    developer: "a",
    project: "b",
    upstream: "skaffold",
    source: "initech/a/b/skaffold",
  };
  const names = { developer_name: "a", project_name: "b", address: "" };
  const positions = { first_position: endOf(1), last_position: endOf(1), last_event_ns: 0, gaps: 0 };
  const row = { ...source, ...names, ...positions, connected: false, in_session: false, status: "lost" } as const;
  await database.db.insertInto("sources").values(row).execute();
  const known = await sqlRole(["create", "--workspace", "initech"], { TAPEDECK_POSTGRES_URL: empty.url });
  expect(known).toMatchObject({ code: 0, err: expect.not.stringContaining("Nothing was recorded") });
});

it("a login that could guess names of other workspaces is refused, unless that is said to be right", async () => {
  const theirs = { TAPEDECK_POSTGRES_URL: await ofUser("createrole") };
  const refused = await sqlRole(["create", "--workspace", "acme"], theirs);
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toContain("run the statement of docs/team.md#sql once, or pass --may-guess-names.\n");
  const made = await sqlRole(["create", "--workspace", "acme", "--may-guess-names", "-q"], theirs);
  expect(made).toMatchObject({ code: 0, err: "" });
  expect(await sqlRole(["drop", new URL(made.out).username], theirs)).toMatchObject({ code: 0 });
});

it("a login is written for programs, or alone", async () => {
  const asJson = await sqlRole(["create", "--workspace", "acme", "--json"]);
  expect(asJson).toMatchObject({ code: 0, err: "" });
  const { url: address, ...made } = JSON.parse(asJson.out) as { url: string; login: string; password: string };
  const output = { login: expect.any(String), password: expect.any(String), leftOut: [] };
  expect(made).toEqual({ ...output, workspace: "acme", developer: null, createdAt: expect.stringMatching(/Z$/) });
  const { username, password, host, pathname } = new URL(address);
  expect([username, password]).toEqual([made.login, made.password]);
  expect([host, pathname]).toEqual([new URL(url).host, new URL(url).pathname]);

  const alone = await sqlRole(["create", "--workspace", "acme", "-q"]);
  expect(alone).toMatchObject({ code: 0, err: "" });
  expect(alone.out).toMatch(/^postgres\S+\n$/);
  for (const login of [made.login, new URL(alone.out).username]) await sqlRole(["drop", login]);
});

/** A database of a user who is no superuser; its address. */
async function ofUser(may: string): Promise<string> {
  const superuser = stack.adopt(await stack.use(openDatabase({ url, connections: 1 })).connect(), (one) => one.end());
  const user = `sql_roles_${randomBytes(4).toString("hex")}`;
  await superuser.query(`create role ${user} login password '${user}' ${may}`);
  stack.defer(async () => void (await superuser.query(`drop role ${user}`)));
  // Both roles were made by another one, such as an administrator of this Postgres.
  const roles = "tapedeck_analyst, tapedeck_reader";
  if (may !== "") await superuser.query(`grant ${roles} to ${user} with admin option, inherit false`);
  const address = new URL(stack.use(await freshDatabase()).url);
  await superuser.query(`alter database ${address.pathname.slice(1)} owner to ${user}`);
  address.username = user;
  address.password = user;
  await using theirs = openDatabase({ url: address.href, connections: 3 });
  await migrate(theirs);
  await letReadersIn(theirs);
  return address.href;
}

it("a database user who may make no roles gets an error that says so, and nothing is written to stdout", async () => {
  const made = await sqlRole(["create", "--workspace", "acme"], { TAPEDECK_POSTGRES_URL: await ofUser("") });
  const why = "this database user may not make roles (CREATEROLE): ask the administrator of this Postgres";
  expect(made).toEqual({ code: 1, out: "", err: `tapedeck: ${why}.\n` });
});

it("a setting that a database user may not make for a login is named", async () => {
  const theirs = { TAPEDECK_POSTGRES_URL: await ofUser("createrole") };
  const made = await sqlRole(["create", "--workspace", "acme", "--may-guess-names"], theirs);
  const login = new URL(made.out.trim()).username;
  expect(made.err.split("\n")).toEqual([
    `${login} reads workspace acme, for psql or any other client of Postgres`,
    "The password is shown only once.",
    "Nothing has been recorded in workspace acme yet.",
    "This database user is not allowed to set these for it: temp_file_limit.",
    "",
  ]);
  expect(await sqlRole(["drop", login], theirs)).toMatchObject({ code: 0 });
});

it.each([
  [{ TAPEDECK_POSTGRES_URL: "" }, /no Tapedeck server runs on .tapedeck.*--data.*TAPEDECK_POSTGRES_URL/],
  [{ TAPEDECK_POSTGRES_URL: "postgres://a:secret@127.0.0.1:1/tapedeck" }, /Postgres at 127.0.0.1:1 can't be reached/],
  [{ TAPEDECK_LIMITS_SQL_CONNECTIONS: "many" }, /TAPEDECK_LIMITS_SQL_CONNECTIONS: "many" is not a whole number/],
])("with %j it is said what is wrong", async (more, words) => {
  const { code, err } = await sqlRole(["list"], more);
  expect([code, err]).toEqual([1, expect.stringMatching(words)]);
  expect(err).not.toContain("secret");
});
