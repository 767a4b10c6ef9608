import { afterAll, beforeAll, expect, it } from "vitest";
import { type ApiHarness, startApiHarness } from "../stack/api-harness.ts";
import { type McpClient, mcpClient } from "./mcp-client.ts";

// Each tool is called with wrong arguments of each kind. An assistant has tools and arguments, and nothing of other interfaces.

let harness: ApiHarness;
let mcp: McpClient;
beforeAll(async () => {
  harness = await startApiHarness();
  mcp = await mcpClient(harness.on.stack.http, { "tapedeck-allow-trigger": "true" }, { mode: "auto" });
});
afterAll(async () => {
  await mcp[Symbol.asyncDispose]();
  await harness[Symbol.asyncDispose]();
});

type Args = Readonly<Record<string, unknown>>;

/** What each tool needs, so that only the argument under test is wrong. */
const needed: Readonly<Record<string, Args>> = {
  compare: { left: "alice/shop" },
  stats: { about: "builds" },
  run_sql: { sql: "select 1" },
  trigger: { action: "build" },
  wait_for_loop: { seconds: 0 },
};

/** Well-formed names of what is not recorded, texts of no form, and values of another type. */
const wrongValues = [
  "nobody/x",
  "nobody/x/skaffold",
  "globex/carol/site/skaffold",
  "alice/shop#99",
  "01ZZ",
  "01A1.1.99",
  "1a00-abcdef",
  "zzzz-zzzz",
  "2020-01-01T00:00:00Z",
  "no such thing!",
  "",
  ["no such thing!"],
  -1,
  1e12,
  null,
  {},
];

const otherInterfaces =
  /GET \/|POST \/|gRPC|header|metadata|\?source=|HTTP|filter\.|parameter|min_position|\/api\/|`what`/i;

async function wrongCalls(): Promise<(readonly [name: string, args: Args])[]> {
  const { tools } = await mcp.client.listTools();
  return tools.flatMap(({ name, inputSchema: { properties = {} } }) => {
    const own = needed[name] ?? {};
    const wrong = Object.keys(properties).flatMap((arg) => wrongValues.map((value) => ({ ...own, [arg]: value })));
    const bare = name === "wait_for_loop" ? own : {};
    return [bare, { ...own, what: "alice/shop" }, own, ...wrong].map((args) => [name, args] as const);
  });
}

it("errors speak of tools and arguments, not of other interfaces", async () => {
  const errors: string[] = [];
  for (const [name, args] of await wrongCalls()) {
    const { text, isError } = await mcp.call(name, args);
    if (!isError) continue;
    const answer = `${name} ${JSON.stringify(args)}: ${text}`;
    errors.push(answer);
    expect(text, answer).not.toMatch(otherInterfaces);
    expect(text, answer).toMatch(/^[a-z_]+: \S/);
    // The words of the library that checks arguments.
    expect(text, answer).not.toMatch(/Invalid (input|option|string)|Too (big|small)|expected \w+|received/);
    if (name !== "compare") expect(text, answer).not.toMatch(/\bleft\b/);
  }
  expect(errors.length).toBeGreaterThan(500);
});

it("each error about an argument names those of the tool", async () => {
  const { tools } = await mcp.client.listTools();
  for (const {
    name,
    inputSchema: { properties = {} },
  } of tools) {
    for (const args of [
      { ...needed[name], what: "alice/shop" },
      { ...needed[name], ...wrongTypes(properties) },
    ]) {
      const { text, isError } = await mcp.call(name, args);
      const names = `Arguments of ${name}: ${Object.keys(properties).join(", ")}`;
      expect([isError, text]).toEqual([true, expect.stringContaining(names)]);
    }
  }
});

const wrongTypes = (properties: object) => Object.fromEntries(Object.keys(properties).map((arg) => [arg, {}]));

it("an unknown source leads to list_sources, and several sources are listed once", async () => {
  const unknown = await mcp.call("why_failed", { source: "nobody/x" });
  expect(unknown.text).toBe(
    'unknown_source: no source "nobody/x" has been recorded\nlist_sources names the recorded sources.',
  );
  const several = await mcp.call("get_state");
  expect(several.text.match(/bob\/shop/g)).toHaveLength(1);
});
