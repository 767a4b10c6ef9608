import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { sourceName } from "@tapedeck/shared/source";
import { testEvent } from "@tapedeck/shared/testing/log-messages";
import { backUp } from "tapedeck/commands/backup/run";
import { rebuildTables } from "tapedeck/commands/rebuild/run";
import { progressPipe } from "tapedeck/testing/progress";
import { expect, it, onTestFinished, vi } from "vitest";
import { httpCall } from "./http-call.ts";
import { acme, globex, Maintained } from "./maintained.ts";
import { bearing } from "./token-stack.ts";

// Every maintenance command after a login: maintain.long.test.ts.

const on = new Maintained();

const call = (method: string, path: string, token: string) =>
  httpCall(on.harness.on.stack.http, method, `/api/v1/${path}`, bearing(token));

const codeOf = ({ status, body }: { status: number; body: string }) => [status, JSON.parse(body).error.code];

const named = (token: string) => ({ TAPEDECK_URL: `http://${on.harness.on.stack.http}`, TAPEDECK_TOKEN: token });

it.each([
  ["DELETE", `sessions/${globex.session}`],
  ["POST", "rebuild"],
  ["GET", "backup"],
])("%s %s is for admins", async (method, path) => {
  expect(codeOf(await call(method, path, on.viewer))).toEqual([403, "forbidden"]);
});

it("an admin of one workspace can neither see nor erase other workspaces, nor back up all of them", async () => {
  expect(codeOf(await call("DELETE", `sessions/${acme.session}`, on.hers))).toEqual([404, "unknown_session"]);
  for (const [method, path] of [
    ["POST", "rebuild"],
    ["GET", "backup"],
  ] as const) {
    const refusal = await call(method, path, on.hers);
    expect(codeOf(refusal)).toEqual([403, "forbidden"]);
    expect(refusal.body).toContain("--all-workspaces");
  }
  for (const [workspace, { events }] of Object.entries({ acme, globex })) {
    const { reader } = await on.harness.on.stack.logs.of(workspace);
    expect(sequenceOf((await reader.bounds()).lastOffset)).toBe(events.length);
  }
});

it("after a login maintenance commands use its address and token; local commands say that they are local", async () => {
  const env = { XDG_CONFIG_HOME: join(on.cwd, "logged-in") };
  const login = ["login", `http://${on.harness.on.stack.http}`, "--name", "team"];
  expect(await on.tapedeck(login, { ...env, TAPEDECK_TOKEN: on.everywhere })).toMatchObject({ code: 0 });
  const erase = ["erase", "--session", acme.session];
  expect(await on.tapedeck([...erase, "--yes"], env)).toMatchObject({
    code: 1,
    err: expect.stringContaining("is still running: end it first"),
  });
  const local = await on.tapedeck([...erase, "--data", "nowhere"], env);
  expect(local).toMatchObject({ code: 1, err: expect.stringContaining("no Tapedeck server runs on nowhere") });
  expect(local.err).toContain("tapedeck: erase at this machine's Tapedeck server (nowhere)\n");
  const { code, err } = await on.tapedeck(["restore", "nothing"], env);
  expect(code).toBe(1);
  expect(err).toContain(
    `tapedeck: restore works on this machine only (.tapedeck), not on http://${on.harness.on.stack.http}`,
  );
});

it("a backup and a rebuild report their progress, also into a pipe", async () => {
  const output = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const progressSpy = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });
  vi.stubEnv("TAPEDECK_TOKEN", on.everywhere);
  const options = { url: `http://${on.harness.on.stack.http}`, data: "nowhere" };
  const progress = progressPipe(60_000);
  await backUp(join(on.cwd, "progress"), options, progress);
  expect(progress.lines().at(-1)).toMatch(/^backup: [\d.]+ \S+$/);
  expect(output.mock.lastCall?.[0]).toMatch(/\([1-9][\d.]* [KM]iB\)\n$/);
  await rebuildTables(options, progress);
  expect(progress.lines().at(-1)).toMatch(/^rebuild: \d+ of \d+ messages \(\d+ %\)$/);
  expect([output.mock.calls.length, progressSpy.mock.calls.length]).toEqual([2, 2]);
});

const countIn = (text: string) => Number(/\d+/.exec(text)?.[0]);

it("a backup, a rebuild and an erasure work remotely", async () => {
  const refused = await on.tapedeck(["backup", "kept"], named(on.hers));
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("--all-workspaces") });
  expect(await readdir(on.cwd)).not.toContain("kept");
  const backup = await on.tapedeck(["backup", "kept"], named(on.everywhere));
  const events = globex.events.length + acme.events.length;
  expect(backup).toMatchObject({
    code: 0,
    err: expect.stringContaining(on.at("backup")),
    out: expect.stringMatching(/^backed up \d+ messages of 2 workspaces to kept /),
  });
  expect((await readdir(join(on.cwd, "kept"))).sort()).toEqual(["acme", "globex", "tokens.json"]);
  const tokens = await readFile(join(on.cwd, "kept", "tokens.json"), "utf8");
  expect(Object.values(JSON.parse(tokens))).toContainEqual(expect.objectContaining({ name: "op", roles: ["admin"] }));
  expect(tokens).not.toContain(on.everywhere.slice(4));

  expect(countIn(backup.out)).toBeGreaterThanOrEqual(events);

  const rebuilt = await on.tapedeck(["rebuild"], named(on.everywhere));
  expect(rebuilt).toMatchObject({
    code: 0,
    err: expect.stringContaining(on.at("rebuild")),
    out: expect.stringMatching(/^rebuilt the tables from \d+ events in \d+ messages of the log \(/),
  });

  const goesOn = await on.tapedeck(["erase", "--session", globex.session, "--yes"], named(on.hers));
  expect(goesOn).toMatchObject({ code: 1, err: expect.stringContaining("is still running: end it first") });
  const source = sourceName({ workspace: "globex", developer: "alice", project: "shop", upstream: "skaffold" });
  const ended = { channel: "tapedeck", kind: "session.ended", session: globex.session } as const;
  await on.harness.on.seed([testEvent(source, 1_000, ended)]);
  const erased = await on.tapedeck(["erase", "--session", globex.session, "--yes"], named(on.hers));
  // Where it takes more than a second, its progress follows.
  expect(erased.err.split("\n")[0]).toBe(on.at("erase").trimEnd());
  expect(erased).toMatchObject({ code: 0, out: expect.stringContaining(`erased session ${globex.session}`) });
  await on.harness.on.stack.caughtUp();
  const again = await call("DELETE", `sessions/${globex.session}`, on.hers);
  expect(again).toMatchObject({ status: 200, body: expect.stringContaining('"state":"done"') });
  // To an admin of another workspace it was never there.
  expect(codeOf(await call("DELETE", `sessions/${acme.session}`, on.hers))).toEqual([404, "unknown_session"]);
  const sessions = async (token: string) => (await call("GET", "sessions", token)).body;
  // Erased events have left their sequences, and a marker came.
  const left = await on.tapedeck(["backup", "after"], named(on.everywhere));
  const [count] = /\d+ messages/.exec(left.out) ?? [];
  expect(count).toBeDefined();
  expect((await on.tapedeck(["rebuild"], named(on.everywhere))).out).toContain(` in ${count} of the log (`);
  expect(await sessions(on.hers)).not.toContain(globex.session);
  expect(await sessions(on.everywhere)).toContain(acme.session);
});
