import { afterAll, beforeAll, expect, it } from "vitest";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { holds, only, workspaceScenario } from "../stack/two-workspaces.ts";
import { type McpClient, mcpClient } from "./mcp-client.ts";

const [acme, globex] = [workspaceScenario("acme"), workspaceScenario("globex")];
const cleanup = new AsyncDisposableStack();
let harness: TokenStack;
let hers: McpClient;
let theirs: McpClient;
/** A position in the middle of acme's log. */
let position: string;

beforeAll(async () => {
  harness = cleanup.use(await startTokenStack());
  await harness.on.seed(globex.events);
  const seqs = await harness.on.seed(acme.events);
  position = harness.on.at(seqs[Math.floor(seqs.length * 0.8)] ?? 0);
  hers = await clientOf((await harness.token("globex", ["viewer"])).text);
  theirs = await clientOf((await harness.token("acme", ["viewer"])).text);
});
afterAll(() => cleanup.disposeAsync());

async function clientOf(token: string): Promise<McpClient> {
  return cleanup.use(await mcpClient(harness.on.stack.http, bearing(token), { mode: "auto" }));
}

const names = [...["alice/shop/skaffold", "acme/alice/shop/skaffold", only.acme.session, `${only.acme.session}.1.1`]];

/** Every tool, with a name in each field that takes one. */
const callsWith = (name: string): readonly (readonly [string, Record<string, unknown>])[] => [
  ["list_sources", {}],
  ["get_state", { source: name }],
  ["get_state", { source: "alice/shop/skaffold", session: name }],
  ["get_state", { source: "alice/shop/skaffold", at: position }],
  ["why_failed", { source: name }],
  ["why_failed", { loop: name }],
  ["why_failed", { session: name }],
  ["why_failed", {}],
  ["compare", { left: name }],
  ["compare", { left: "alice/shop/skaffold", right: name }],
  ["wait_for_loop", { source: name, after: position, seconds: 0 }],
  ["wait_for_loop", { after: "start", seconds: 0 }],
  ["search_events", { source: name }],
  ["search_events", { session: name, kinds: ["*"] }],
  ["search_events", { before: position }],
  ["search_events", { text: "hush" }],
  ["read_output", { source: name }],
  ["read_output", { loop: name }],
  ["read_output", { session: name }],
  ["stats", { about: "failures", group: ["cause", "source", "loop"] }],
  ["stats", { about: "builds", group: ["artifact"], source: [name] }],
];

it("a token sees nothing of another workspace, by whatever name", async () => {
  let isThere = 0;
  for (const name of names) {
    for (const [tool, args] of callsWith(name)) {
      const { text } = await hers.call(tool, args);
      expect([tool, args, holds(text, acme.mark)]).toEqual([tool, args, false]);
      if (holds((await theirs.call(tool, args)).text, acme.mark)) isThere++;
    }
  }
  // The same calls of its own token find it.
  expect(isThere).toBeGreaterThan(20);
});

const post = (headers: Record<string, string>) =>
  fetch(`http://${harness.on.stack.http}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
  });

it("needs a token that may read", async () => {
  const none = await post({});
  expect([none.status, none.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  expect((await post(bearing("tdk_wrong"))).status).toBe(401);
  const recorder = await harness.token("acme", ["recorder"]);
  expect((await post(bearing(recorder.text))).status).toBe(403);
  const viewer = await harness.token("acme", ["viewer"]);
  expect((await post(bearing(viewer.text))).status).toBe(200);
});

it("refuses pages of other origins and names that were rebound", async () => {
  const viewer = bearing((await harness.token("acme", ["viewer"])).text);
  expect((await post({ ...viewer, origin: "https://evil.example" })).status).toBe(403);
});

it("a wait ends when its token is revoked, and says why", async () => {
  const { text, revoke } = await harness.token("acme", ["viewer"]);
  const client = await clientOf(text);
  const waiting = expect(client.call("wait_for_loop", { seconds: 50 })).rejects.toThrow("the token was revoked");
  await client.ask("list_sources");
  await revoke();
  await waiting;
});
