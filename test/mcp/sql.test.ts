import { afterAll, beforeAll, expect, it } from "vitest";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { holds, workspaceScenario } from "../stack/two-workspaces.ts";
import { type McpClient, mcpClient } from "./mcp-client.ts";

const [acme, globex] = [workspaceScenario("acme"), workspaceScenario("globex")];
const cleanup = new AsyncDisposableStack();
let harness: TokenStack;
let hers: McpClient;
let theirs: McpClient;

beforeAll(async () => {
  harness = cleanup.use(await startTokenStack({ TAPEDECK_LIMITS_SQL_STATEMENT: "5s" }));
  await harness.on.seed([...acme.events, ...globex.events]);
  const clientOf = async (workspace: string) => {
    const { text } = await harness.token(workspace, ["viewer"]);
    return cleanup.use(await mcpClient(harness.on.stack.http, bearing(text), { mode: "auto" }));
  };
  [theirs, hers] = [await clientOf("acme"), await clientOf("globex")];
});
afterAll(() => cleanup.disposeAsync());

const rowsIn = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("["))
    .map((line) => JSON.parse(line));

it("a query is answered with its columns and rows, also where two columns have the same name", async () => {
  const sql =
    "select kind, count(*), count(*) filter (where outcome = 'failed') from operations where kind = 'loop' group by 1 -- by kind";
  expect(rowsIn(await theirs.ask("run_sql", { sql: `${sql}\n;` }))).toEqual([
    ["kind", "count", "count"],
    ["loop", 3, 2],
  ]);
  expect(rowsIn(await theirs.ask("run_sql", { sql: "values (1, null), (2, E'a\\nb')" }))).toEqual([
    ["column1", "column2"],
    [1, null],
    [2, "a\nb"],
  ]);
});

it("numbers are numbers where that is exact, as in the API", async () => {
  const sql =
    "select 9007199254740991, 9007199254740993, 1.50::numeric, 0.1::float8, 'NaN'::float8, '7'::text, sum(2::int8)";
  expect(rowsIn(await theirs.ask("run_sql", { sql }))[1]).toEqual([
    Number.MAX_SAFE_INTEGER,
    "9007199254740993",
    1.5,
    0.1,
    "NaN",
    "7",
    2,
  ]);
});

it("a query sees its workspace, and nothing else, whatever it does", async () => {
  const tables = rowsIn(
    await hers.ask("run_sql", {
      sql: "select table_name from information_schema.columns where table_schema = 'tapedeck' group by 1 order by 1",
    }),
  ).slice(1);
  expect(tables.length).toBeGreaterThan(30);
  let isThere = 0;
  for (const [table] of tables) {
    const ask = { sql: `select t::text from tapedeck.${table} t`, tokens: 20_000, limit: 1_000 };
    expect([table, holds((await hers.call("run_sql", ask)).text, acme.mark)]).toEqual([table, false]);
    if (holds(await theirs.ask("run_sql", ask), acme.mark)) isThere++;
  }
  expect(isThere).toBeGreaterThan(10);
});

it.each<[what: string, sql: string]>([
  ["a write within a query", "with gone as (delete from sources returning *) select * from gone"],
  ["another role by a function", "select set_config('role', 'tapedeck_analyst', false)"],
  ["another user by a function", "select set_config('session_authorization', 'postgres', false)"],
  ["a table of Tapedeck's own", "select * from tapedeck_internal.checkpoint"],
  ["the passwords of logins", "select * from tapedeck_private.own_logins"],
  ["a file of the server", "select pg_read_file('/etc/passwd')"],
  ["the end of our own parentheses", "select 1) answer(c0) union all select repeat('x', 100000000) from (select 1"],
  ["an open comment", "select 1 /*"],
  ["a mistake", "select 1 frm sources where"],
])("%s is refused, with what Postgres says", async (_what, sql) => {
  const { text, isError } = await theirs.call("run_sql", { sql });
  expect([isError, text]).toEqual([true, expect.stringMatching(/^invalid_argument: Postgres refuses the query: "/)]);
});

it.each<[what: string, sql: string, begins: string]>([
  ["a write", "delete from sources", "delete"],
  ["a plan", "/* slow */ -- why\n EXPLAIN analyze select 1", "EXPLAIN"],
  ["a setting that is shown", "show work_mem", "show"],
  ["a setting", "set role tapedeck_analyst", "set"],
  ["a table", "create table mine (a int)", "create"],
  ["a copy to a program", "copy sources to program 'cat'", "copy"],
  ["a mistake at its beginning", "selct 1", "selct"],
])("%s is refused with the statements that are run", async (_what, sql, begins) => {
  const { text, isError } = await theirs.call("run_sql", { sql });
  expect([isError, text]).toEqual([
    true,
    expect.stringContaining(`begins with "${begins}": only one query is run, which begins with SELECT, WITH or VALUES`),
  ]);
});

it("several statements are refused with what is run instead", async () => {
  const { text, isError } = await theirs.call("run_sql", { sql: "select 1; select 2" });
  expect([isError, text]).toEqual([
    true,
    expect.stringMatching(/^invalid_argument: there are several statements in it/),
  ]);
});

it("large values and many rows are cut, and the answer says so", async () => {
  const large = await theirs.ask("run_sql", { sql: "select repeat('x', 5000000) as x" });
  expect(large.length).toBeLessThan(3_000);
  expect(large).toContain("x…");
  const columns = Array.from({ length: 100 }, (_, column) => `repeat('x', 2000) as c${column}`).join(", ");
  const wide = await theirs.ask("run_sql", { sql: `select ${columns} from generate_series(1, 1000)`, limit: 1_000 });
  // 200 MB in all.
  expect(wide).toMatch(/rows after the first 4\. Ask for fewer columns, or sum them up\./);
  const many = await theirs.ask("run_sql", { sql: "select * from generate_series(1, 100000) as n", limit: 1_000 });
  expect(many.length).toBeLessThan(12_000);
  expect(many).toMatch(/Left out: rows after the first 1000\./);
});

it("a query that takes too long is ended, by the limit of all logins", async () => {
  const { text, isError } = await theirs.call("run_sql", { sql: "select pg_sleep(600)" });
  expect([isError, text]).toEqual([
    true,
    expect.stringMatching(/^limit_exceeded: the query took longer than 5 s: narrow/),
  ]);
});

it("a query that is ended with its call is too slow, and the database is not away", async () => {
  await using short = await startTokenStack({ TAPEDECK_LIMITS_QUERY: "2s" });
  const { text: token } = await short.token("acme", ["viewer"]);
  await using mcp = await mcpClient(short.on.stack.http, bearing(token), { mode: "auto" });
  const queries = ["select pg_sleep(600)", "select count(*) from generate_series(1, 1e12)"];
  for (const sql of queries) {
    const { text, isError } = await mcp.call("run_sql", { sql });
    expect([sql, isError, text]).toEqual([
      sql,
      true,
      expect.stringMatching(/^limit_exceeded: the query took longer than 2 s: narrow it/),
    ]);
  }
});

it("two first queries at the same time use one login", async () => {
  const { text } = await harness.token("initech", ["viewer"]);
  await using first = await mcpClient(harness.on.stack.http, bearing(text), { mode: "auto" });
  const ask = () => first.ask("run_sql", { sql: "select current_user" });
  const users = (await Promise.all([ask(), ask(), ask()])).map((one) => rowsIn(one)[1][0]);
  expect(new Set(users).size).toBe(1);
  expect(users[0]).toMatch(/^tapedeck_reader_/);
});

it("a viewer sees its own rows, and sums, where developers are hidden", async () => {
  await using hidden = await startTokenStack({ TAPEDECK_PRIVACY_DEVELOPERS: "hidden" });
  const bob = workspaceScenario("globex", { workspace: "acme", developer: "bob" });
  await hidden.on.seed([...acme.events, ...bob.events]);
  const developers = async (developer: string | null) => {
    const { text } = await hidden.token("acme", ["viewer"], 3_600_000, developer);
    await using mcp = await mcpClient(hidden.on.stack.http, bearing(text), { mode: "auto" });
    const sql = "select distinct developer from operations order by 1";
    const sums = "select sum(loops) from tapedeck_team.loops_daily";
    return [
      rowsIn(await mcp.ask("run_sql", { sql })).slice(1),
      rowsIn(await mcp.ask("run_sql", { sql: sums })).slice(1),
    ];
  };
  expect(await developers("bob")).toEqual([[["bob"]], [[6]]]);
  expect(await developers(null)).toEqual([[], [[6]]]);
});
