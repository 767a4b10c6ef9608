import { execFile } from "node:child_process";
import { mkdtemp, readFile, symlink } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { type ApiHarness, startApiHarness } from "../stack/api-harness.ts";
import { mcpClient } from "./mcp-client.ts";

// docs/mcp.md is used as its readers use it: what they copy is copied here.

const page = await readFile(new URL("../../docs/mcp.md", import.meta.url), "utf8");
const blocks = (kind: string) =>
  [...page.matchAll(/^```(\w*)\n(.*?)\n```$/gms)].flatMap(([, of, text = ""]) => (of === kind ? [text] : []));

type Entry = {
  readonly type?: string;
  readonly command?: string;
  readonly args?: string[];
  readonly url?: string;
  readonly headers?: Record<string, string>;
};
const settings = blocks("json").map((text) => {
  const { mcpServers, servers } = JSON.parse(text) as Record<string, { tapedeck: Entry } | undefined>;
  return (mcpServers ?? servers)?.tapedeck ?? {};
});
const commands = blocks("").flatMap((text) => text.split("\n"));

let harness: ApiHarness;
let cwd: string;
let env: Record<string, string>;
beforeAll(async () => {
  harness = await startApiHarness();
  cwd = await mkdtemp(join(inject("serversFolder"), "mcp-page-"));
  const program = new URL("../../packages/cli/bin/tapedeck.mjs", import.meta.url).pathname;
  await symlink(program, join(cwd, "tapedeck"));
  env = {
    PATH: [cwd, join(process.execPath, ".."), process.env.PATH].join(delimiter),
    TAPEDECK_URL: `http://${harness.on.stack.http}`,
    XDG_CONFIG_HOME: cwd,
  };
});
afterAll(() => harness[Symbol.asyncDispose]());

/** The address of the page, as this test's Tapedeck has it. */
const here = (text: string) =>
  text
    .replace("http://127.0.0.1:7052", `http://${harness.on.stack.http}`)
    .replace("https://tapedeck.example:7052", `http://${harness.on.stack.http}`);

it.each(settings)(
  "an assistant with these settings finds the tools: %o",
  async ({ command, args = [], url = "", headers }) => {
    const transport =
      command === undefined
        ? new StreamableHTTPClientTransport(new URL(here(url)), { requestInit: { headers: { ...headers } } })
        : new StdioClientTransport({ command, args, env, cwd });
    const client = new Client({ name: "test", version: "1" });
    await client.connect(transport);
    const { tools } = await client.listTools();
    await client.close();
    expect(tools.map(({ name }) => name)).toContain("why_failed");
  },
);

it("the settings are those of the command and of HTTP, for several assistants", () => {
  expect(settings.map(({ command, url }) => command ?? new URL(url ?? "").pathname)).toEqual([
    "tapedeck",
    "tapedeck",
    "/mcp",
    "/mcp",
  ]);
  expect(commands.filter((line) => line.startsWith("claude "))).toEqual([
    "claude mcp add tapedeck -- tapedeck mcp",
    "claude mcp add --transport http tapedeck http://127.0.0.1:7052/mcp",
  ]);
});

it("the line with curl lists the tools", async () => {
  const [line = ""] = commands.filter((one) => one.startsWith("curl "));
  const { stdout } = await promisify(execFile)("bash", ["-c", here(line)]);
  expect(stdout).toContain('"name":"why_failed"');
});

it("the table has each tool with its arguments, and no others", async () => {
  const listed = [...page.matchAll(/^\| `(\w+)` \|.*\| (.*) \|$/gm)].map(([, name, args]) => `${name}: ${args}`);
  await using mcp = await mcpClient(harness.on.stack.http, { "tapedeck-allow-trigger": "true" });
  const { tools } = await mcp.client.listTools();
  const own = tools.map(({ name, inputSchema: { properties = {}, required = [] } }) => {
    // An argument with a default is always there for the tool, and not for its caller.
    const args = Object.entries(properties).map(([arg, schema]) =>
      required.includes(arg) && !Object.hasOwn(schema as object, "default") ? `\`${arg}\` (required)` : `\`${arg}\``,
    );
    return `${name}: ${args.join(", ")}`;
  });
  expect(listed.toSorted()).toEqual(own.toSorted());
  expect(listed.length).toBeLessThanOrEqual(10);
});
