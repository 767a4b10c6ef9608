import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { progressPipe, progressTerminal } from "../../testing/progress.ts";
import { recordingFolder } from "../../testing/skaffold-program.ts";
import { startUp, type TestUp } from "../../testing/up.ts";
import { rebuildTables } from "../rebuild/run.ts";
import { backUp } from "./run.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-backup-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

type Page = {
  readonly items: readonly { readonly id: string; readonly position: string }[];
  readonly position: string;
};

const run = async (...args: string[]) => {
  const cli = startCli(args, { cwd });
  const code = await cli.ended;
  return { code, out: cli.stdout(), err: cli.stderr() };
};

async function get<Answer>({ env }: TestUp, path: string): Promise<{ status: number; body: Answer }> {
  const response = await fetch(`${env.TAPEDECK_URL}/api/v1/${path}`);
  return { status: response.status, body: (await response.json()) as Answer };
}

/** A backup and a rebuild of the Tapedeck that runs on a data folder. */
async function reportsHowFar(data: string): Promise<void> {
  const output = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => void vi.restoreAllMocks());
  for (const progress of [progressPipe(60_000), progressTerminal()]) {
    await backUp(join(mkdtempSync(join(cwd, "told-")), "kept"), { data }, progress);
    expect(progress.text()).toMatch(/backup: [1-9][\d.]* [KM]iB/);
    await rebuildTables({ data }, progress);
    expect(progress.text()).toMatch(/rebuild: (\d+) of \1 messages \(100 %\)/);
  }
  expect(output).toHaveBeenCalledTimes(4);
  vi.restoreAllMocks();
}

it("a log that was backed up comes back: positions from before are good, what came after is foreign", async () => {
  const recording = loadRecording(recordingFolder("01-dev-success-3-artifacts-5-iterations"));
  await using fake = await startFakeSkaffold({ recording });
  writeFileSync(join(cwd, "tapedeck.yaml"), "sources: []\n");
  const start = () => startUp({ cwd, args: ["--skaffold", fake.address, "--developer", "alice", "--project", "shop"] });
  const all = async (up: TestUp) => (await get<Page>(up, "events?limit=1000")).body;

  await using stack = new AsyncDisposableStack();
  const first = await start();
  stack.defer(async () => void (await first.stop()));
  await fake.playUntil({ v1: 10 });
  const before = await until(async () => ((await all(first)).items.length > 10 ? all(first) : undefined), {
    message: "the beginning to be recorded",
  });
  expect((await run("token", "create", "--name", "a page", "--role", "viewer")).code).toBe(0);
  const backup = await run("backup", "kept");
  expect(backup).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^backed up \d+ messages of one workspace to kept/),
  });
  const backedUp = Number(/\d+/.exec(backup.out)?.[0]);
  const tokens = JSON.parse(readFileSync(join(cwd, "kept", "tokens.json"), "utf8")) as object;
  expect(Object.values(tokens)).toMatchObject([{ name: "a page", roles: ["viewer"] }]);
  expect(await run("backup", "kept")).toMatchObject({ code: 1, err: expect.stringContaining("kept is not empty") });
  await reportsHowFar(join(cwd, ".tapedeck"));
  expect(await run("restore", "kept")).toMatchObject({
    code: 1,
    err: expect.stringMatching(/Tapedeck runs on .*: stop it/),
  });
  await fake.play();
  const after = await until(
    async () => {
      const page = await all(first);
      // The last of them came after the backup.
      return page.items.length > backedUp + 20 ? page : undefined;
    },
    { message: "more to be recorded" },
  );
  await first.stop();

  expect(await run("restore", "nothing")).toMatchObject({
    code: 1,
    err: expect.stringContaining("there is no folder"),
  });
  expect(await run("restore", "kept")).toMatchObject({ code: 1, err: expect.stringContaining("add --replace") });
  const restored = await run("restore", "kept", "--replace");
  expect(restored).toMatchObject({ code: 0, err: "" });
  expect(restored.out).toMatch(/^restored \d+ messages of the workspace "default"; its log continues as epoch \w{6}\n/);
  expect(restored.out).toContain("the tables are ahead of the log");
  expect(readdirSync(join(cwd, ".tapedeck", "replaced"))).toHaveLength(1);

  const second = await start();
  stack.defer(async () => void (await second.stop()));
  const now = await until(
    async () => {
      const page = await all(second);
      return page.items.length > before.items.length ? page : undefined;
    },
    { message: "recording to go on" },
  );
  const ids = ({ items }: Page) => items.map(({ id }) => id);
  expect(ids(now).slice(0, before.items.length)).toEqual(ids(before));
  const [last, lost] = [before.items.at(-1)?.position, after.items.at(-1)?.position];
  const rest = await get<Page>(second, `events?after=${last}`);
  expect(ids(rest.body)[0]).toBe(ids(now)[before.items.length]);
  expect(await get(second, `events?after=${lost}`)).toMatchObject({
    status: 409,
    body: { error: { code: "position_foreign" } },
  });
  const at = await until(
    async () => {
      const state = await get<{ position: string }>(second, `state?at=${last}`);
      return state.status === 200 ? state : undefined;
    },
    { message: "the tables to be made anew" },
  );
  expect(at.body.position.split("-")[0]).toBe(last?.split("-")[0]);
});
