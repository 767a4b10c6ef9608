import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { type MadeToken, makeToken, type TokenRequest } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let stack: TokenStack;
let make: (more?: Partial<TokenRequest>, ageMs?: number) => Promise<MadeToken>;
const day = 86_400_000;

beforeAll(async () => {
  stack = cleanup.use(await startTokenStack());
  const nats = cleanup.adopt(await connect({ servers: stack.on.stack.parts.nats.url }), (nc) => nc.close());
  const store = await openTokenStore(nats);
  make = async (more = {}, ageMs = 20 * day) => {
    const request: TokenRequest = { name: "nightly", workspace: "acme", roles: ["recorder"], lifetimeMs: 30 * day };
    const made = makeToken({ ...request, developer: "alice", renewable: true, ...more }, Date.now() - ageMs);
    await store.create(made);
    return made;
  };
});

const call = (path: string, headers: Readonly<Record<string, string>> = {}, method = "POST", body?: string) =>
  stack.on.stack.httpCall(method, path, headers, body);
const renew = (text: string) => call("/api/v1/tokens/renew", bearing(text));

it("the holder of a token renews it, whatever its roles; both are valid for a while, and are revoked together", async () => {
  const old = await make({ machine: true });
  const { status, body, headers } = await renew(old.text);
  const { token, ...record } = JSON.parse(body);
  expect([status, headers["cache-control"]]).toEqual([201, "no-store"]);
  expect(record).toMatchObject({ id: old.record.id, roles: ["recorder"], developer: "alice", machine: true });
  expect(Math.round((Date.parse(record.expiresAt) - Date.now()) / day)).toBe(30);
  for (const text of [old.text, token]) {
    const about = await call("/about", bearing(text), "GET");
    expect([about.status, JSON.parse(about.body).token?.name]).toEqual([200, "nightly (machine)"]);
  }
  expect(await renew(old.text)).toMatchObject({ status: 403 });
  expect(await renew(token)).toMatchObject({ status: 403, body: expect.stringContaining("second half of its life") });
  const admin = await stack.token("acme", ["admin"]);
  expect((await call(`/api/v1/tokens/${old.record.id}`, bearing(admin.text), "DELETE")).status).toBe(200);
  const audit = await call("/api/v1/audit", bearing(admin.text), "GET");
  expect(audit.body).toContain('"action":"token.renewed"');
  expect(audit.body).not.toContain("tdk_");
  for (const text of [old.text, token]) {
    await expect.poll(async () => (await call("/about", bearing(text), "GET")).status).toBe(401);
  }
});

it.each<[string, Partial<TokenRequest>, number, RegExp]>([
  ["that was not created as renewable", { renewable: undefined }, 20 * day, /--renewable/],
  ["in the first half of its life", {}, 10 * day, /from \d{4}-.* on/],
])("a token %s is not renewed", async (_, more, ageMs, words) => {
  const { status, body } = await renew((await make(more, ageMs)).text);
  expect([status, JSON.parse(body).error.message]).toEqual([403, expect.stringMatching(words)]);
});

it("nobody renews with anything but a token that is valid", async () => {
  expect((await call("/api/v1/tokens/renew")).status).toBe(401);
  expect((await renew((await make({}, 31 * day)).text)).status).toBe(401);
  const viewer = await make({ roles: ["viewer"] });
  const origin = `http://${stack.on.stack.http}`;
  const signedIn = await call("/api/v1/sign-in", { origin }, "POST", JSON.stringify({ token: viewer.text }));
  const cookie = `${signedIn.headers["set-cookie"]}`.split(";")[0] ?? "";
  const headers = { cookie, origin, "sec-fetch-site": "same-origin" };
  expect((await call("/api/v1/tokens/renew", headers)).status).toBe(401);
});

it("tapedeck token renew replaces the token of a login, and prints that of the environment", async () => {
  const cwd = await mkdtemp(join(inject("serversFolder"), "renew-"));
  const url = `http://${stack.on.stack.http}`;
  const old = await make({ roles: ["viewer"] });
  const file = join(cwd, "config", "tapedeck", "contexts.json");
  await mkdir(join(cwd, "config", "tapedeck"), { recursive: true });
  await writeFile(file, JSON.stringify({ current: "team", contexts: { team: { url, token: old.text } } }));
  await using ofLogin = startCli(["token", "renew"], { cwd });
  expect([await ofLogin.ended, ofLogin.stdout()]).toEqual([0, ""]);
  expect(ofLogin.stderr()).toContain("it is saved in context team. The old token is valid for another hour.");
  const { token } = JSON.parse(await readFile(file, "utf8")).contexts.team;
  expect(token).not.toBe(old.text);
  expect((await call("/about", bearing(token), "GET")).status).toBe(200);
  const env = { TAPEDECK_URL: url, TAPEDECK_TOKEN: (await make({ roles: ["viewer"] })).text };
  await using printed = startCli(["token", "renew"], { cwd, env });
  expect([await printed.ended, printed.stdout()]).toEqual([0, expect.stringMatching(/^tdk_[\w-]{43}\n$/)]);
});

it("tapedeck token create --from makes a token for each developer of a list", async () => {
  const cwd = await mkdtemp(join(inject("serversFolder"), "many-"));
  const admin = await stack.token("acme", ["admin"]);
  const env = { TAPEDECK_URL: `http://${stack.on.stack.http}`, TAPEDECK_TOKEN: admin.text };
  await writeFile(join(cwd, "team.txt"), "dana\nerin  Erin's laptop\n");
  const expected = ["--role", "recorder", "--role", "viewer", "--renewable"];
  await using cli = startCli(["token", "create", "--from", "team.txt", ...expected], { cwd, env });
  expect([await cli.ended, cli.stderr()]).toEqual([0, expect.stringContaining("2 tokens")]);
  const lines = cli
    .stdout()
    .trim()
    .split("\n")
    .map((line) => line.split("\t"));
  expect(lines.map(([developer]) => developer)).toEqual(["dana", "erin"]);
  for (const [developer, text] of lines) {
    const about = JSON.parse((await call("/about", bearing(text), "GET")).body);
    expect(about.token).toMatchObject({ developer, roles: ["viewer", "recorder"] });
  }
  await using list = startCli(["token", "list"], { cwd, env });
  await list.ended;
  expect(list.stdout()).toMatch(/Erin's laptop\s+viewer, recorder\s+acme\s+erin/);
  await writeFile(join(cwd, "bad.txt"), "frank\nGina.X\n");
  await using bad = startCli(["token", "create", "--from", "bad.txt", ...expected], { cwd, env });
  expect([await bad.ended, bad.stdout(), bad.stderr()]).toEqual([1, "", expect.stringContaining('line 2: "Gina.X"')]);
});
