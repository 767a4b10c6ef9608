import { spawn } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { collect } from "tapedeck/testing/cli";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { workspaceScenario } from "../stack/two-workspaces.ts";

const acme = workspaceScenario("acme");
const program = new URL("../../packages/cli/bin/tapedeck.mjs", import.meta.url).pathname;
let harness: TokenStack;
let cwd: string;
beforeAll(async () => {
  harness = await startTokenStack();
  await harness.on.seed(acme.events);
  cwd = await mkdtemp(join(inject("serversFolder"), "mcp-"));
});
afterAll(() => harness[Symbol.asyncDispose]());

/** An assistant that starts `tapedeck mcp`. */
async function assistant(token: string, args: readonly string[] = [], mode = "auto") {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, "mcp", ...args],
    cwd,
    env: { PATH: process.env.PATH ?? "", TAPEDECK_URL: `http://${harness.on.stack.http}`, TAPEDECK_TOKEN: token },
    stderr: "pipe",
  });
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } as object });
  await client.connect(transport);
  return { client, [Symbol.asyncDispose]: () => client.close() };
}

const textOf = async (client: Client, name: string, args: Record<string, unknown> = {}) => {
  const { content } = await client.callTool({ name, arguments: args });
  return content.map((one) => (one.type === "text" ? one.text : "")).join("");
};

it.each([
  ["auto", "2026-07-28"],
  ["legacy", "2025-11-25"],
])("an assistant asks the server of the login, with its token (%s)", async (mode, version) => {
  const { text } = await harness.token("acme", ["viewer"]);
  await using here = await assistant(text, [], mode);
  expect(here.client.getNegotiatedProtocolVersion()).toBe(version);
  expect(await textOf(here.client, "why_failed")).toContain(acme.mark);
});

it("several calls are under way at the same time, and one can be cancelled", async () => {
  const { text } = await harness.token("acme", ["viewer"]);
  await using here = await assistant(text);
  const stop = new AbortController();
  const waits = async () => {
    const { body } = await harness.on.stack.httpCall("GET", "/metrics", bearing(text));
    return Number(/^tapedeck_gateway_subscriptions(?:\{.*\})? (\d+)/m.exec(body)?.[1]);
  };
  const waiting = here.client.callTool({ name: "wait_for_loop", arguments: { seconds: 50 } }, { signal: stop.signal });
  expect(await textOf(here.client, "list_sources")).toContain("alice/shop");
  await expect.poll(waits).toBe(1);
  stop.abort("enough");
  await expect(waiting).rejects.toThrow("enough");
  // The wait itself would last longer.
  await expect.poll(waits).toBe(0);
  expect(await textOf(here.client, "list_sources")).toContain("alice/shop");
});

it("requests that came before the end of the input are answered", async () => {
  const { text } = await harness.token("acme", ["viewer"]);
  const env = { PATH: process.env.PATH, TAPEDECK_URL: `http://${harness.on.stack.http}`, TAPEDECK_TOKEN: text };
  await using cli = collect(spawn(process.execPath, [program, "mcp"], { cwd, env, stdio: "pipe" }));
  const call = (id: number, name: string, args: object) =>
    JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
  const lines = [call(1, "wait_for_loop", { seconds: 2 }), call(2, "list_sources", {})];
  cli.child.stdin?.end(lines.map((line) => `${line}\n`).join(""));
  expect(await cli.ended).toBe(0);
  const answers = cli.stdout().trim().split("\n").filter(Boolean);
  expect(answers.map((line) => JSON.parse(line).id).toSorted()).toEqual([1, 2]);
  expect(cli.stdout()).toContain("Nothing has ended in 2 s");
});

it("each line is answered, also one that is no message or has other ends of lines in it", async () => {
  const { text } = await harness.token("acme", ["viewer"]);
  const env = { PATH: process.env.PATH, TAPEDECK_URL: `http://${harness.on.stack.http}`, TAPEDECK_TOKEN: text };
  await using cli = collect(spawn(process.execPath, [program, "mcp"], { cwd, env, stdio: "pipe" }));
  const ping = (id: number) => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" });
  const separators = "\u2028 \u2029 \u0085";
  const call = { name: "list_sources", arguments: {}, _meta: { separators } };
  const lines = [
    "null",
    "7",
    `[${ping(1)}]`,
    JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: call }),
  ];
  cli.child.stdin?.end(`${lines.join("\r\n")}\n${ping(3)}`);
  expect(await cli.ended).toBe(0);
  const answers = cli
    .stdout()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(answers.filter(({ id }) => id === null).map(({ error }) => error.code)).toEqual([-32_600, -32_600, -32_600]);
  expect(answers.flatMap(({ id }) => id ?? []).toSorted()).toEqual([2, 3]);
  expect(answers.find(({ id }) => id === 2)).toMatchObject({ result: { content: expect.anything() } });
});

it("--allow-trigger shows the trigger to a token that may control", async () => {
  const { text } = await harness.token("acme", ["controller"]);
  const tools = async (args: readonly string[]) => {
    await using here = await assistant(text, args);
    return (await here.client.listTools()).tools.map(({ name }) => name);
  };
  expect(await tools([])).not.toContain("trigger");
  expect(await tools(["--allow-trigger"])).toContain("trigger");
});

it("a refused token and a server that is away are errors with a reason", async () => {
  await expect(assistant("tdk_wrong")).rejects.toThrow(/token/);
  const env = { PATH: process.env.PATH, TAPEDECK_URL: "http://127.0.0.1:1" };
  await using cli = collect(spawn(process.execPath, [program, "mcp"], { cwd, env, stdio: "pipe" }));
  cli.child.stdin?.write('no json\n{"jsonrpc":"2.0","id":7,"method":"tools/list"}\n');
  const answers = async () => cli.stdout().trim().split("\n").filter(Boolean);
  await expect.poll(answers).toHaveLength(2);
  const [wrong, away] = (await answers()).map((line) => JSON.parse(line));
  expect(wrong).toMatchObject({ id: null, error: { code: -32_700 } });
  expect(away).toMatchObject({ id: 7, error: { message: expect.stringContaining("no Tapedeck server answers") } });
  cli.child.stdin?.end();
  expect(await cli.ended).toBe(0);
});
