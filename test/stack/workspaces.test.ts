import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario, write } from "@tapedeck/query/testing/scenario";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect, type NatsConnection } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { httpCall } from "./http-call.ts";
import { type Stack, startStack } from "./stack.ts";
import { bearing } from "./token-stack.ts";
import { workspaceScenario } from "./two-workspaces.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

const [acme, globex] = [workspaceScenario("acme"), workspaceScenario("globex")];
let stack: Stack;
let nats: NatsConnection;
let cwd: string;
/** Tokens: of an admin of all workspaces, of one of globex, and of a viewer there. */
let everywhere: string;
let hers: string;
let viewer: string;

beforeAll(async () => {
  stack = cleanup.use(await startStack({ skaffold: [], env: { TAPEDECK_AUTH: "tokens" } }));
  nats = cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  cwd = await mkdtemp(join(inject("serversFolder"), "workspaces-"));
  const tokens = await openTokenStore(nats);
  const token = async (workspace: string, role: Role, more: { readonly everywhere?: true } = {}) => {
    const made = makeToken({ name: "op", workspace, roles: [role], lifetimeMs: 3_600_000, ...more });
    await tokens.create(made);
    return made.text;
  };
  everywhere = await token("acme", "admin", { everywhere: true });
  hers = await token("globex", "admin");
  viewer = await token("globex", "viewer");
  await seed("acme", acme.events);
  await seed("globex", globex.events);
});

/** Writes into the log of a workspace, and waits until the tables have it. */
async function seed(workspace: string, events: readonly Event[]): Promise<void> {
  await using log = await openLog(nats, { workspace, syncKnown: true, timeoutMs: 20_000 });
  await write(log, events);
  const isThere = async () => {
    const { lines } = await call("GET", `workspaces/${workspace}`, everywhere);
    return lines[0].tables?.behindMessages === 0;
  };
  await until(isThere, { message: "the tables to have it" });
}

const call = async (method: string, path: string, token: string, body?: object) => {
  const headers = { ...bearing(token), ...(body && { "content-type": "application/json" }) };
  const answer = await httpCall(stack.http, method, `/api/v1/${path}`, headers, body && JSON.stringify(body));
  const lines = answer.body.trim().split("\n");
  return { status: answer.status, lines: lines.map((line) => JSON.parse(line)) };
};

async function tapedeck(args: readonly string[], token: string) {
  const env = { TAPEDECK_URL: `http://${stack.http}`, TAPEDECK_TOKEN: token };
  await using cli = startCli(args, { cwd, env });
  return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
}

/** Reads a stream until the server ends it. */
function follow(token: string) {
  let text = "";
  const read = async () => {
    const { body } = await fetch(`http://${stack.http}/api/v1/stream?after=start`, { headers: bearing(token) });
    for await (const chunk of body ?? []) text += Buffer.from(chunk).toString();
  };
  return { ended: read(), text: () => text };
}

it("an admin sees the workspaces of the token, and nobody else any", async () => {
  const all = await call("GET", "workspaces", everywhere);
  const names = all.lines[0].items.map(({ workspace }: { workspace: string }) => workspace);
  expect(names).toEqual(expect.arrayContaining(["acme", "globex"]));
  const own = await call("GET", "workspaces", hers);
  expect(own.lines[0].items).toEqual([
    {
      workspace: "globex",
      state: "recorded",
      messages: globex.events.length,
      bytes: expect.any(Number),
      oldestAt: expect.any(String),
      newestAt: expect.any(String),
      tables: { sources: 3, events: globex.events.length, behindMessages: 0, query: "", waitsFor: null },
      retention: { factsSeconds: null, textSeconds: null, isDefault: true },
    },
  ]);
  expect(await call("GET", "workspaces/globex", hers)).toMatchObject({ lines: own.lines[0].items });
  for (const [method, path] of [
    ["GET", "workspaces/acme"],
    ["DELETE", "workspaces/acme"],
    ["POST", "workspaces/acme/retention"],
  ] as const) {
    const body = method === "POST" ? { facts: "90d" } : undefined;
    for (const token of [hers, viewer]) expect(await call(method, path, token, body)).toMatchObject({ status: 403 });
  }
  expect(await call("GET", "workspaces", viewer)).toMatchObject({ status: 403 });
  expect(await call("GET", "workspaces/never", everywhere)).toMatchObject({ status: 404 });
});

it("the retention of a workspace is changed over the API and by the CLI", async () => {
  const changed = await call("POST", "workspaces/globex/retention", hers, { text: "14d" });
  expect(changed.lines).toEqual([{ factsSeconds: null, textSeconds: 1_209_600, isDefault: false }]);
  const wrong = await call("POST", "workspaces/globex/retention", hers, { text: "soon" });
  expect(wrong).toMatchObject({ status: 400, lines: [{ error: { code: "invalid_argument", field: "text" } }] });
  const cli = await tapedeck(["workspace", "retention", "globex", "--facts", "90d"], hers);
  expect(cli).toMatchObject({ code: 0, out: "globex: facts 90d, text 14d (its own)\n" });
  const back = await tapedeck(["workspace", "retention", "globex", "--facts", "default", "--text", "default"], hers);
  expect(back).toMatchObject({ code: 0, out: expect.stringContaining("globex: for ever") });
  const entries = (await call("GET", "audit", hers)).lines;
  expect(entries.filter(({ action }) => action === "workspace.retention-changed")).toMatchObject([
    { workspace: "globex", about: { facts: "for ever", text: "1209600 s" } },
    { about: { facts: "7776000 s" } },
    { about: { facts: "for ever", text: "for ever" } },
  ]);
});

it("a removed workspace is answered by nothing from then on, others are untouched, and its name begins anew", async () => {
  const before = (await call("GET", "events?limit=1000", hers)).lines[0];
  const theirs = (await call("GET", "workspaces/acme", everywhere)).lines[0];
  const list = await tapedeck(["workspace", "list"], everywhere);
  expect(list).toMatchObject({ code: 0, out: expect.stringMatching(/^globex +3 +\d+ .*up to date +for ever$/m) });
  const followed = follow(hers);
  await until(() => followed.text().includes("hush-globex"), { message: "a follower to have read it" });
  const unsure = await tapedeck(["workspace", "remove", "globex"], everywhere);
  expect(unsure).toMatchObject({ code: 1, err: expect.stringContaining("nothing was removed") });
  const removed = await tapedeck(["workspace", "remove", "globex", "--yes"], everywhere);
  expect(removed).toMatchObject({ code: 0, out: `removed globex: ${globex.events.length} messages\n` });

  const acmes = (await call("GET", "workspaces/acme", everywhere)).lines[0];
  expect(acmes).toEqual(theirs);
  expect((await call("DELETE", "workspaces/globex", everywhere)).lines.at(-1)).toMatchObject({ type: "complete" });
  for (const path of ["sources", "sessions", "operations", "search", "events"]) {
    expect(JSON.stringify((await call("GET", path, hers)).lines)).not.toContain("hush-globex");
  }
  // A live follower gets an error, and nothing of a log that begins later.
  await followed.ended;
  expect(followed.text()).toMatch(
    /"code":"not_ready","message":"the log was replaced by another one: connect again"\}\}\s*$/,
  );
  const audit = (await call("GET", "audit", hers)).lines;
  expect(audit.filter(({ action }) => action === "workspace.removed")).toMatchObject([
    { who: "op", workspace: "globex", about: { messages: globex.events.length } },
  ]);

  const source = sourceName({ workspace: "globex", developer: "bob", project: "shop", upstream: "skaffold" });
  const anew = scenario(source);
  const session = anew.session("01KE3M9Z6Q4W8T2V5X7Y9A1B99");
  session.started();
  await seed("globex", anew.events);
  const sources = await until(
    async () => {
      const { lines } = await call("GET", "sources", hers);
      return lines[0].items?.length === 1 && lines[0];
    },
    { message: "the new log to be projected" },
  );
  expect(sources.items).toMatchObject([{ source }]);
  expect(sources.position.split("-")[1]).not.toBe(before.position.split("-")[1]);
  const foreign = await call("GET", `events?after=${before.position}`, hers);
  expect(foreign).toMatchObject({ lines: [{ error: { code: "position_foreign" } }] });
});
