import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { knownTokens } from "@tapedeck/shared/tokens/known-tokens";
import type { TokenRecord } from "@tapedeck/shared/tokens/token";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { refuseAudit } from "../../testing/audit.ts";
import { startCli } from "../../testing/cli.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let cwd: string;
let env: Record<string, string>;

/** A folder without a Tapedeck, and a NATS that its settings name. */
beforeAll(async () => {
  cwd = await mkdtemp(join(inject("serversFolder"), "tokens-"));
  const nats = stack.use(await startTestNats({ user: "deck", password: "secret" }));
  env = { TAPEDECK_NATS_URL: nats.url, TAPEDECK_NATS_USER: "deck", TAPEDECK_NATS_PASSWORD: "secret" };
  await writeFile(join(cwd, "tapedeck.yaml"), "workspace: Acme\n");
});

async function token(args: readonly string[], more: Record<string, string> = {}) {
  await using cli = startCli(["token", ...args], { cwd, env: { ...env, ...more } });
  const code = await cli.ended;
  return { code, out: cli.stdout(), err: cli.stderr() };
}

it("a token that is made lets its bearer in; it is written once, and listed without it, until it is revoked", async () => {
  const alices = await token(["create", "--name", "Alice's laptop", "--role", "recorder", "--developer", "Alice"]);
  expect(alices).toMatchObject({ code: 0, out: expect.stringMatching(/^tdk_[\w-]{43}\n$/) });
  expect(alices.err).toMatch(/recorder in workspace acme, for alice, until \d{4}-\d\d-\d\d; id [0-9a-f]{12}\n/);
  expect(alices.err).toContain("auth: tokens");
  const wishes = ["create", "--name", "ci", "--role", "viewer", "--role", "controller", "--workspace", "globex"];
  const ci = await token([...wishes, "--expires", "1h", "--json"], { TAPEDECK_AUTH: "tokens" });
  const { token: text, ...record } = JSON.parse(ci.out) as TokenRecord & { token: string };
  expect(ci.err).toBe("");
  expect(record).toMatchObject({ name: "ci", roles: ["viewer", "controller"], workspace: "globex" });
  expect(Date.parse(record.expiresAt) - Date.parse(record.createdAt)).toBe(3_600_000);

  const url = env.TAPEDECK_NATS_URL ?? "";
  const connection = stack.adopt(
    await connectNats("test", { url, user: "deck", password: "secret" }, silentLogger),
    (nc) => nc.close(),
  );
  const tokens = stack.use(knownTokens({ connection: () => ({ connection, broken: new AbortController().signal }) }));
  const held = await tokens.find(text);
  expect(held.record).toEqual(record);

  const list = await token(["list"]);
  expect(list.out).toMatch(new RegExp(`${record.id}\\s+ci\\s+viewer, controller\\s+globex\\s+-`));
  expect(list.out).toMatch(/Alice's laptop\s+recorder\s+acme\s+alice/);
  expect(list.out).not.toContain("tdk_");
  expect(list.out).not.toContain(text.slice(4, 20));
  const ofOne = JSON.parse((await token(["list", "--json", "--workspace", "globex"])).out);
  expect(ofOne).toEqual({ items: [record] });

  expect(await token(["revoke", record.id])).toMatchObject({
    code: 0,
    out: "revoked ci (viewer, controller in workspace globex)\n",
  });
  await until(() => held.over.aborted, { message: "the end of what it was used for" });
  expect(await token(["revoke", record.id])).toMatchObject({
    code: 1,
    err: expect.stringContaining("there is no token"),
  });
  expect((await token(["list"])).out).not.toContain(record.id);
});

it("a token that can't be in the audit log is made and written, and revoked, with a remark", async () => {
  await using nats = await startTestNats();
  const connection = stack.adopt(await connectNats("test", { url: nats.url }, silentLogger), (nc) => nc.close());
  await refuseAudit(connection);
  const there = { TAPEDECK_NATS_URL: nats.url, TAPEDECK_AUTH: "tokens" };
  const remark = expect.stringMatching(/^tapedeck: this action is missing from the audit log: .*message size exceeds/m);
  const made = await token(["create", "--name", "ops", "--role", "viewer", "--json"], there);
  expect(made).toMatchObject({ code: 0, err: remark });
  const { id, token: text } = JSON.parse(made.out) as TokenRecord & { token: string };
  expect(text).toMatch(/^tdk_/);
  expect(await token(["revoke", id], there)).toMatchObject({ code: 0, err: remark });
});

it.each([
  [["create", "--name", "x", "--role", "recorder"], /needs a developer/],
  [["create", "--name", "x", "--role", "god"], /Expected one of viewer, controller, recorder, admin/],
  [["create", "--name", "x"], /--role/],
  [["create", "--role", "viewer"], /--name/],
  [["create", "--name", "x", "--role", "viewer", "--expires", "soon"], /"soon" is not a duration/],
  [["create", "--name", "x", "--role", "viewer", "--expires", "9999d"], /within ten years/],
])("%j says what is wrong", async (args, words) => {
  const { code, out, err } = await token(args);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toMatch(words);
});

it("--data means the folder here, whatever server is selected", async () => {
  const elsewhere = { TAPEDECK_URL: "http://127.0.0.1:1" };
  expect(await token(["list", "--data", ".tapedeck"], elsewhere)).toMatchObject({ code: 0, err: "" });
  const ops = ["create", "--name", "ops", "--role", "admin", "--all-workspaces", "-q", "--data", ".tapedeck"];
  expect(await token(ops, elsewhere)).toMatchObject({ code: 0, out: expect.stringMatching(/^tdk_/) });
  expect(await token(["list"], { ...elsewhere, TAPEDECK_DATA: ".tapedeck" })).toMatchObject({
    code: 1,
    err: expect.stringContaining("no Tapedeck server answers at http://127.0.0.1:1"),
  });
  expect(await token(["list", "--data", ".tapedeck", "--url", "127.0.0.1:1"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("give one of them"),
  });
});

it.each([
  [{ TAPEDECK_NATS_URL: "" }, /no Tapedeck server runs on .tapedeck.*--data.*TAPEDECK_NATS_URL.*--url/],
  [{ TAPEDECK_NATS_URL: "nats://127.0.0.1:1" }, /NATS at 127.0.0.1:1 can't be reached/],
  [{ TAPEDECK_NATS_PASSWORD: "wrong" }, /can't be reached \(.*[Aa]uthorization/],
  [{ TAPEDECK_URL: "http://127.0.0.1:1" }, /no Tapedeck server answers at http:\/\/127.0.0.1:1/],
])("with %j the message names where it was searched for", async (more, words) => {
  expect(await token(["list"], more)).toMatchObject({ code: 1, err: expect.stringMatching(words) });
});
