import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { letReadersIn } from "@tapedeck/query/db/access/grants";
import { openDatabase } from "@tapedeck/query/db/database";
import { migrate } from "@tapedeck/query/db/migrate";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { startCli } from "../../testing/cli.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let cwd: string;
let url: string;

/** A folder without a Tapedeck, and a Postgres that its settings name. */
beforeAll(async () => {
  cwd = await mkdtemp(join(inject("serversFolder"), "sql-roles-"));
  ({ url } = stack.use(await freshDatabase()));
  const database = stack.use(openDatabase({ url, connections: 3 }));
  await migrate(database);
  await letReadersIn(database);
});

async function sqlRole(args: readonly string[], more: Record<string, string> = {}) {
  await using cli = startCli(["sql-role", ...args], { cwd, env: { TAPEDECK_POSTGRES_URL: url, ...more } });
  const code = await cli.ended;
  return { code, out: cli.stdout(), err: cli.stderr() };
}

it("a login that is made reads its workspace, is written once, listed without its password, and dropped", async () => {
  expect((await sqlRole(["list"])).out).toBe("There are no logins for one workspace.\n");
  const made = await sqlRole(["create", "--workspace", "Acme"]);
  expect(made).toMatchObject({ code: 0, err: expect.stringContaining("reads workspace acme") });
  const address = new URL(made.out.trim());
  const { username: login } = address;
  {
    await using reader = openDatabase({ url: address.href, connections: 1 });
    expect(await reader.db.selectFrom("sources").selectAll().execute()).toEqual([]);
    await expect(reader.db.selectFrom("checkpoint").selectAll().execute()).rejects.toThrow("permission denied");
  }
  const list = await sqlRole(["list"]);
  expect(list.out).toMatch(new RegExp(`${login}\\s+acme\\s+\\d{4}-\\d\\d-\\d\\d`));
  expect(list.out).not.toContain(address.password);
  const { items } = JSON.parse((await sqlRole(["list", "--json"])).out) as { items: object[] };
  expect(items).toEqual([{ login, workspace: "acme", createdAt: expect.stringMatching(/Z$/) }]);

  expect(await sqlRole(["drop", login])).toMatchObject({ code: 0, out: `dropped ${login} (of workspace acme)\n` });
  const none = `tapedeck: there is no login ${login} for one workspace: see \`tapedeck sql-role list\`.\n`;
  expect(await sqlRole(["drop", login])).toEqual({ code: 1, out: "", err: none });
});

it.each([
  [{ TAPEDECK_POSTGRES_URL: "" }, /no Tapedeck runs on .tapedeck.*--data.*TAPEDECK_POSTGRES_URL/],
  [{ TAPEDECK_POSTGRES_URL: "postgres://a:secret@127.0.0.1:1/tapedeck" }, /the Postgres at 127.0.0.1:1 can't be asked/],
  [{ TAPEDECK_LIMITS_SQL_CONNECTIONS: "many" }, /TAPEDECK_LIMITS_SQL_CONNECTIONS: "many" is not a whole number/],
])("with %j it is said what is wrong", async (more, words) => {
  const { code, err } = await sqlRole(["list"], more);
  expect([code, err]).toEqual([1, expect.stringMatching(words)]);
  expect(err).not.toContain("secret");
});
