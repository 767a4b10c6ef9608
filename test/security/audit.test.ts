import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { scenario } from "@tapedeck/query/testing/scenario";
import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore, type TokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { bearing, type TestToken } from "../stack/token-stack.ts";
import { ProviderBrowser } from "./provider-browser.ts";
import { type ProviderStack, startProviderStack } from "./provider-stack.ts";

// The audit log says who did what. It is written by the gateway and by commands, without secrets, and read by admins of
// the workspace only.

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let stack: ProviderStack;
let tokens: TokenStore;
let [admin, viewer, ofGlobex, ofAll]: Pick<TestToken, "text" | "record">[] = [];
beforeAll(async () => {
  stack = cleanup.use(await startProviderStack());
  admin = await stack.tokens.token("acme", ["admin"]);
  viewer = await stack.tokens.token("acme", ["viewer"]);
  ofGlobex = await stack.tokens.token("globex", ["admin"]);
  const nats = cleanup.adopt(await connect({ servers: stack.tokens.on.stack.parts.nats.url }), (nc) => nc.close());
  const expected = {
    name: "ops",
    workspace: "acme",
    roles: ["admin"],
    everywhere: true,
    lifetimeMs: 3_600_000,
  } as const;
  const made = makeToken({ ...expected, roles: [...expected.roles] });
  tokens = await openTokenStore(nats);
  await tokens.create(made);
  ofAll = made;
});

const call = (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: string) =>
  stack.tokens.on.stack.httpCall(method, path, headers, body);

async function entries(token = admin, query = ""): Promise<AuditEntry[]> {
  const { status, body } = await call("GET", `/api/v1/audit${query}`, bearing(token?.text));
  expect(status).toBe(200);
  const lines = body
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.pop()).toEqual({ type: "complete" });
  return lines.map(({ type: _, ...entry }) => entry);
}

/** Waits for an entry, because actions do not wait for theirs. */
const recorded = (expected: object, token = admin) =>
  until(async () => (await entries(token)).find((entry) => matches(entry, expected)), {
    message: JSON.stringify(expected),
  });

function matches(entry: object, expected: object): boolean {
  try {
    expect(entry).toMatchObject(expected);
    return true;
  } catch {
    return false;
  }
}

describe("the audit log", () => {
  it("has tokens that were created and revoked, with who did it and not the token", async () => {
    const by = { who: admin?.record.name, kind: "token", by: admin?.record.id, workspace: "acme" };
    const made = await call(
      "POST",
      "/api/v1/tokens",
      bearing(admin?.text),
      JSON.stringify({ name: "ci", roles: ["viewer"] }),
    );
    const { id, token } = JSON.parse(made.body);
    await call("DELETE", `/api/v1/tokens/${id}`, bearing(admin?.text));
    await recorded({ action: "token.created", ...by, about: { id, name: "ci", roles: ["viewer"] } });
    await recorded({ action: "token.revoked", ...by, about: { id } });
    expect(JSON.stringify(await entries())).not.toContain(token.slice(4));
  });

  it("has control calls that were refused", async () => {
    await call("POST", "/v1/execute", bearing(viewer?.text), "{}");
    const about = { method: expect.stringContaining("Execute"), code: "forbidden" };
    await recorded({ action: "control.refused", by: viewer?.record.id, about });
  });

  it("has people of the identity provider who came in, each JWT once, and who were refused", async () => {
    const jwt = await stack.provider.sign({ sub: "u-7", preferred_username: "carol" });
    for (const _ of [1, 2, 3]) await call("GET", "/api/v1/sources", bearing(jwt));
    const carol = { who: expect.stringMatching(/^carol \(/), kind: "person", by: `${stack.provider.issuer} u-7` };
    await recorded({ action: "sign-in.accepted", ...carol, about: { way: "jwt", roles: ["viewer", "controller"] } });
    expect((await entries()).filter((entry) => matches(entry, carol))).toHaveLength(1);
    const secret = await stack.provider.sign({ aud: "another" });
    await call("GET", "/api/v1/sources", bearing(secret));
    const refusal = { action: "sign-in.refused", workspace: "-", who: "127.0.0.1", kind: "address" };
    await recorded({ ...refusal, about: { method: "jwt", reason: expect.stringContaining('"aud"') } }, ofAll);

    const browser = new ProviderBrowser();
    const callback = `${stack.origin}/api/v1/sign-in/callback`;
    await browser.ask(await browser.logIn(`${stack.origin}/api/v1/sign-in/provider`, "alice", callback));
    await recorded({ action: "sign-in.accepted", who: expect.stringMatching(/^alice \(/), about: { way: "page" } });
    const stranger = new ProviderBrowser();
    await stranger.ask(await stranger.logIn(`${stack.origin}/api/v1/sign-in/provider`, "stranger", callback));
    const reason = expect.stringContaining("stranger has no access here");
    await recorded({ ...refusal, about: { method: "page", reason } }, ofAll);
    const all = JSON.stringify(await entries(ofAll));
    for (const text of [jwt, secret]) for (const part of text.split(".")) expect(all).not.toContain(part);
    expect(all).not.toMatch(/code=|state=/);
  });

  it("says what each caller is, whatever a token is called, and new tokens are called like nobody else", async () => {
    const person = await stack.provider.sign({ sub: "u-9", preferred_username: "dora" });
    await call("GET", "/api/v1/sources", bearing(person));
    const dora = await recorded({ action: "sign-in.accepted", by: `${stack.provider.issuer} u-9` });
    expect(dora.kind).toBe("person");
    for (const name of [dora.who, "nightly (machine)", "oidc:dora", "anonymous", "127.0.0.1", "root on this machine"]) {
      const body = JSON.stringify({ name, roles: ["viewer"] });
      const refused = await call("POST", "/api/v1/tokens", bearing(admin?.text), body);
      expect([name, refused.status, refused.body]).toEqual([name, 400, expect.stringContaining("name: ")]);
      // Whatever a token in the store is called, its kind says what it is.
      const { text, hash, record } = makeToken({
        name: "x",
        workspace: "acme",
        roles: ["admin"],
        lifetimeMs: 3_600_000,
      });
      await tokens.create({ text, hash, record: { ...record, name } });
      await call("POST", "/api/v1/tokens", bearing(text), JSON.stringify({ name: "by it", roles: ["viewer"] }));
      await recorded({ action: "token.created", who: name, kind: "token", by: record.id });
    }
    const machine = await call(
      "POST",
      "/api/v1/tokens",
      bearing(admin?.text),
      JSON.stringify({ name: "nightly", roles: ["admin"], machine: true }),
    );
    await call("POST", "/v1/execute", bearing(JSON.parse(machine.body).token), "{}");
    await recorded({ action: "control.refused", who: "nightly (machine)", kind: "machine" });
  });

  it("has exports and erasures", async () => {
    const id = "01M7XB1CJJ74KGYJT57DM4N80H";
    const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
    const shop = scenario(source);
    const session = shop.session(id);
    session.started();
    session.ended("process-exit");
    await stack.tokens.on.seed(shop.events);
    const cwd = await mkdtemp(join(inject("serversFolder"), "audit-"));
    const { grpc, http } = stack.tokens.on.stack;
    const env = {
      TAPEDECK_URL: `http://${http}`,
      TAPEDECK_GRPC_PORT: grpc.split(":")[1] ?? "",
      TAPEDECK_TOKEN: admin?.text ?? "",
    };
    await using cli = startCli(["export", id], { cwd, env });
    expect([await cli.ended, cli.stderr()]).toEqual([0, expect.anything()]);
    await recorded({ action: "session.exported", by: admin?.record.id, about: { sessions: [id] } });
    const { body } = await call("DELETE", `/api/v1/sessions/${id}`, bearing(admin?.text));
    expect(JSON.parse(body.trim().split("\n").at(-2) ?? "")).toMatchObject({
      state: "done",
      exports: [{ who: "admin of acme", kind: "token" }],
    });
    await recorded({
      action: "session.erased",
      kind: "token",
      by: admin?.record.id,
      about: { source, session: id, events: 2 },
    });
    await using shown = startCli(["audit", "--since", "1h"], { cwd, env });
    expect(await shown.ended).toBe(0);
    expect(shown.stdout()).toMatch(/session\.exported {3}token {4}acme {2}admin of acme {2}sessions=01M7\w+\n/);
    await using last = startCli(["audit", "-n", "1", "--json"], { cwd, env });
    await last.ended;
    expect(JSON.parse(last.stdout())).toEqual((await entries()).at(-1));
    await using json = startCli(["audit", "--json"], { cwd, env });
    await json.ended;
    expect(
      json
        .stdout()
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(await entries());
  });

  it("has exports of tables, by their days", async () => {
    const cwd = await mkdtemp(join(inject("serversFolder"), "audit-"));
    const { grpc, http } = stack.tokens.on.stack;
    const env = {
      TAPEDECK_URL: `http://${http}`,
      TAPEDECK_GRPC_PORT: grpc.split(":")[1] ?? "",
      TAPEDECK_TOKEN: viewer?.text ?? "",
    };
    const days = { from: "2026-11-20", to: "2026-11-21" };
    await using cli = startCli(["export", "--parquet", "tables", "--from", days.from, "--to", days.to], { cwd, env });
    expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);
    await recorded({ action: "tables.exported", by: viewer?.record.id, workspace: "acme", about: days });
  });

  it("is for admins, each of whom sees their own workspace", async () => {
    expect((await call("GET", "/api/v1/audit")).status).toBe(401);
    expect((await call("GET", "/api/v1/audit", bearing(viewer?.text))).status).toBe(403);
    expect((await entries()).every(({ workspace }) => workspace === "acme")).toBe(true);
    expect(await entries(ofGlobex)).toEqual([]);
    expect(await entries(admin, "?since=2999-01-01T00:00:00Z")).toEqual([]);
    expect((await entries(admin, "?since=2020-01-01T00:00:00%2B02:00")).length).toBeGreaterThan(3);
    expect((await call("GET", "/api/v1/audit?since=soon", bearing(admin?.text))).status).toBe(400);
  });
});
