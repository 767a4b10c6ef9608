import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { sourceName } from "@tapedeck/shared/source";
import { testEvent } from "@tapedeck/shared/testing/log-messages";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { backUp } from "tapedeck/commands/backup/run";
import { rebuildTables } from "tapedeck/commands/rebuild/run";
import { startCli } from "tapedeck/testing/cli";
import { progressPipe } from "tapedeck/testing/progress";
import { afterAll, beforeAll, expect, inject, it, onTestFinished, vi } from "vitest";
import { httpCall } from "./http-call.ts";
import { bearing, startTokenStack, type TokenStack } from "./token-stack.ts";
import { workspaceScenario } from "./two-workspaces.ts";

const [acme, globex] = [workspaceScenario("acme"), workspaceScenario("globex")];
const cleanup = new AsyncDisposableStack();
let harness: TokenStack;
let cwd: string;
/** An admin of globex, one of all workspaces, and one viewer. */
let hers: string;
let everywhere: string;
let viewer: string;

beforeAll(async () => {
  harness = cleanup.use(await startTokenStack());
  await harness.on.seed(globex.events);
  await harness.on.seed(acme.events);
  hers = (await harness.token("globex", ["admin"])).text;
  viewer = (await harness.token("globex", ["viewer"])).text;
  const made = makeToken({ name: "op", workspace: "acme", roles: ["admin"], everywhere: true, lifetimeMs: 3_600_000 });
  const connection = cleanup.adopt(await connect({ servers: harness.on.stack.parts.nats.url }), (nc) => nc.close());
  await (await openTokenStore(connection)).create(made);
  everywhere = made.text;
  cwd = await mkdtemp(join(inject("serversFolder"), "maintain-"));
});
afterAll(() => cleanup.disposeAsync());

const call = (method: string, path: string, token: string) =>
  httpCall(harness.on.stack.http, method, `/api/v1/${path}`, bearing(token));

const codeOf = ({ status, body }: { status: number; body: string }) => [status, JSON.parse(body).error.code];

const named = (token: string) => ({ TAPEDECK_URL: `http://${harness.on.stack.http}`, TAPEDECK_TOKEN: token });

async function tapedeck(args: readonly string[], env: Record<string, string>) {
  await using cli = startCli(args, { cwd, env });
  return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
}

it.each([
  ["DELETE", `sessions/${globex.session}`],
  ["POST", "rebuild"],
  ["GET", "backup"],
])("%s %s is for admins", async (method, path) => {
  expect(codeOf(await call(method, path, viewer))).toEqual([403, "forbidden"]);
});

it("an admin of one workspace can neither see nor erase other workspaces, nor back up all of them", async () => {
  expect(codeOf(await call("DELETE", `sessions/${acme.session}`, hers))).toEqual([404, "unknown_session"]);
  for (const [method, path] of [
    ["POST", "rebuild"],
    ["GET", "backup"],
  ] as const) {
    const refusal = await call(method, path, hers);
    expect(codeOf(refusal)).toEqual([403, "forbidden"]);
    expect(refusal.body).toContain("--all-workspaces");
  }
  const lastSeq = sequenceOf((await harness.on.log.reader.bounds()).lastOffset);
  expect(lastSeq).toBe(globex.events.length + acme.events.length);
});

/** The line that a command prints first. */
const at = (command: string, context = "") => `tapedeck: ${command} at http://${harness.on.stack.http}${context}\n`;

it("after a login maintenance commands use its address and token; local commands say that they are local", async () => {
  const env = { XDG_CONFIG_HOME: join(cwd, "logged-in") };
  const login = ["login", `http://${harness.on.stack.http}`, "--name", "team"];
  expect(await tapedeck(login, { ...env, TAPEDECK_TOKEN: everywhere })).toMatchObject({ code: 0 });
  const there = " (context team)";
  expect(await tapedeck(["rebuild"], env)).toMatchObject({
    code: 0,
    err: expect.stringContaining(at("rebuild", there)),
  });
  expect(await tapedeck(["backup", "kept-after-login"], env)).toMatchObject({
    code: 0,
    err: expect.stringContaining(at("backup", there)),
  });
  const erase = ["erase", "--session", acme.session];
  const nobody = "tapedeck: stdin is not a terminal, so the erasure can't be confirmed: add --yes.\n";
  expect(await tapedeck(erase, env)).toMatchObject({ code: 1, err: `${at("erase", there)}${nobody}` });
  expect(await tapedeck([...erase, "--yes"], env)).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("is still running: end it first") },
  });

  for (const args of [["rebuild"], ["backup", "never"], erase]) {
    const local = await tapedeck([...args, "--data", "nowhere"], env);
    expect(local).toMatchObject({ code: 1, err: expect.stringContaining("no Tapedeck server runs on nowhere") });
    expect(local.err).toContain(`tapedeck: ${args[0]} at this machine's Tapedeck server (nowhere)\n`);
  }
  for (const [command = "", ...args] of [["restore", "nothing"], ["new-epoch"], ["sql-role", "list"]]) {
    const { code, err } = await tapedeck([command, ...args], env);
    const [first, second] = err.split("\n");
    const where = `works on this machine only (.tapedeck), not on http://${harness.on.stack.http} (context team)`;
    expect([code, first]).toEqual([1, `tapedeck: ${command} ${where}, which other commands use`]);
    expect(second).toMatch(/^tapedeck: /);
  }
  const forAll = ["token", "create", "--name", "ops", "--role", "admin", "--all-workspaces"];
  expect((await tapedeck(forAll, env)).err).toContain("created on the server itself");
  expect((await tapedeck(["erase", "--help"], env)).out.replace(/\s+/g, " ")).toContain(
    "an admin's token, from the login or TAPEDECK_TOKEN",
  );
});

it("a backup and a rebuild report their progress, also into a pipe", async () => {
  const said = vi.spyOn(console, "log").mockReturnValue();
  const progressSpy = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });
  vi.stubEnv("TAPEDECK_TOKEN", everywhere);
  const options = { url: `http://${harness.on.stack.http}`, data: "nowhere" };
  const progress = progressPipe(60_000);
  await backUp(join(cwd, "progress"), options, progress);
  expect(progress.lines().at(-1)).toMatch(/^backup: [\d.]+ \S+$/);
  expect(said.mock.lastCall?.[0]).toMatch(/\([1-9][\d.]* [KM]iB\)$/);
  await rebuildTables(options, progress);
  expect(progress.lines().at(-1)).toMatch(/^rebuild: \d+ of \d+ events \(\d+ %\)$/);
  expect([said.mock.calls.length, progressSpy.mock.calls.length]).toEqual([2, 2]);
});

it("a backup, a rebuild and an erasure work remotely", async () => {
  const refused = await tapedeck(["backup", "kept"], named(hers));
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("--all-workspaces") });
  expect(await readdir(cwd)).not.toContain("kept");
  const backup = await tapedeck(["backup", "kept"], named(everywhere));
  const events = globex.events.length + acme.events.length;
  expect(backup).toMatchObject({
    code: 0,
    err: expect.stringContaining(at("backup")),
    out: expect.stringMatching(`^backed up ${events} events to `),
  });
  expect((await readdir(join(cwd, "kept"))).sort()).toEqual(["backup.json", "stream.tar.s2", "tokens.json"]);
  const tokens = await readFile(join(cwd, "kept", "tokens.json"), "utf8");
  expect(Object.values(JSON.parse(tokens))).toContainEqual(expect.objectContaining({ name: "op", roles: ["admin"] }));
  expect(tokens).not.toContain(everywhere.slice(4));

  const rebuilt = await tapedeck(["rebuild"], named(everywhere));
  expect(rebuilt).toMatchObject({
    code: 0,
    err: expect.stringContaining(at("rebuild")),
    out: expect.stringContaining(`rebuilt the tables from ${events} events`),
  });

  const goesOn = await tapedeck(["erase", "--session", globex.session, "--yes"], named(hers));
  expect(goesOn).toMatchObject({ code: 1, err: expect.stringContaining("is still running: end it first") });
  const source = sourceName({ workspace: "globex", developer: "alice", project: "shop", upstream: "skaffold" });
  const ended = { channel: "tapedeck", kind: "session.ended", session: globex.session } as const;
  await harness.on.seed([testEvent(source, 1_000, ended)]);
  const erased = await tapedeck(["erase", "--session", globex.session, "--yes"], named(hers));
  expect(erased.err).toBe(at("erase"));
  expect(erased).toMatchObject({ code: 0, out: expect.stringContaining(`erased session ${globex.session}`) });
  await harness.on.stack.caughtUp();
  expect(codeOf(await call("DELETE", `sessions/${globex.session}`, hers))[1]).toMatch(
    /unknown_session|invalid_argument/,
  );
  const sessions = async (token: string) => (await call("GET", "sessions", token)).body;
  // Erased events have left their sequences, and a marker came.
  const left = await tapedeck(["backup", "after"], named(everywhere));
  const [count] = /\d+ events/.exec(left.out) ?? [];
  expect(count).toBeDefined();
  expect((await tapedeck(["rebuild"], named(everywhere))).out).toContain(`rebuilt the tables from ${count} (`);
  expect(await sessions(hers)).not.toContain(globex.session);
  expect(await sessions(everywhere)).toContain(acme.session);
});
