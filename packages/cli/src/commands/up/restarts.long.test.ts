import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningCli, startCli } from "../../testing/cli.ts";
import { installSkaffold, recordingFolder } from "../../testing/skaffold-program.ts";
import { startUp, type TestUp } from "../../testing/up.ts";

const dev = recordingFolder("01-dev-success-3-artifacts-5-iterations");
const build = recordingFolder("12-skaffold-build-one-shot");

type Items<Item> = { readonly items: readonly Item[] };
type Session = { readonly session: string; readonly source: string; readonly endedAt: string | null };
type Event = { readonly id: string };

const killed = {
  "gateway/src/main": "gateway was killed",
  "query/src/main": "query was killed",
  "ingest/src/main": "ingest was killed",
  "nats-server": "NATS exited unexpectedly",
  "bin/postgres": "Postgres exited unexpectedly",
};

const idsIn = ({ stdout }: RunningCli) =>
  stdout()
    .split("\n")
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as Event).id);

/** The process number of a child whose command line holds a text. */
function childOf(parent: number, text: string): number {
  const { stdout } = spawnSync("ps", ["-ww", "-eo", "pid=,ppid=,args="], { encoding: "utf8" });
  const found = stdout
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .find((match) => Number(match?.[2]) === parent && match?.[3]?.includes(text));
  if (found === undefined) throw new Error(`no ${text}`);
  return Number(found?.[1]);
}

describe("tapedeck up", () => {
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-up-"));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
  const path = installSkaffold(join(cwd, "bin"));
  let fake: FakeSkaffold;
  let up: TestUp;

  beforeAll(async () => {
    fake = await startFakeSkaffold({ recording: loadRecording(dev) });
    up = await start();
    await fake.play();
    await until(async () => (await sessionsOf("alice/shop")).length === 1, { message: "the session" });
  });
  afterAll(async () => {
    await up?.stop();
    await fake?.[Symbol.asyncDispose]();
    rmSync(cwd, { recursive: true, force: true });
  });

  const start = () => startUp({ cwd, args: ["--skaffold", fake.address, "--developer", "alice", "--project", "shop"] });
  const ask = (...args: string[]): RunningCli =>
    startCli(args, { cwd, env: { ...up.env, PATH: path, STAND_IN_RECORDING: build } });
  const json = async <Answer>(...args: string[]): Promise<Answer> => {
    const cli = ask(...args, "--json");
    expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);
    return JSON.parse(cli.stdout()) as Answer;
  };
  const sessionsOf = async (source: string) => (await json<Items<Session>>("sessions", "-s", source)).items;

  it("starts again what dies, and a tail goes on with each event once", async () => {
    const follow = ["tail", "--after", "start", "--all"];
    await using tail = ask(...follow, "--json");
    await until(() => idsIn(tail).length > 0, { message: "the tail to show something" });
    const pid = up.cli.child.pid ?? 0;
    for (const [name, reported] of Object.entries(killed)) {
      const before = childOf(pid, name);
      process.kill(before, "SIGKILL");
      await until(() => up.cli.stdout().includes(reported), { message: `${name} to be missed` });
      await until(() => childOf(pid, name) !== before, { message: `${name} to be there again` });
    }
    const run = ask("run", "--developer", "carla", "--project", "blog", "--", "skaffold", "build");
    expect(await run.ended).toBe(0);
    await until(async () => (await sessionsOf("carla/blog"))[0]?.endedAt, { message: "carla's run" });

    // A single request is refused with "try again" while the gateway has not found the restarted NATS.
    const all = await until(
      async () => {
        const request = ask(...follow, "--no-follow", "--json");
        expect([await request.ended, request.stderr()]).toEqual([0, ""]);
        return request;
      },
      { message: "the log to be readable again" },
    );
    await until(() => idsIn(tail).length >= idsIn(all).length, { message: "the tail to have it all" });
    expect(idsIn(tail)).toEqual(idsIn(all));
    expect(idsIn(all).length).toBeGreaterThan(300);
    tail.child.kill("SIGINT");
    expect(await tail.ended).toBe(0);
  });

  it("erases a session for good, imports what is new, and rebuilds its tables", async () => {
    const [session] = await sessionsOf("carla/blog");
    const erased = ask("erase", "--session", session?.session ?? "", "--yes", "--json");
    expect([await erased.ended, erased.stderr()]).toEqual([0, `tapedeck: erase at ${up.env.TAPEDECK_URL}\n`]);
    expect((JSON.parse(erased.stdout()) as { events: number }).events).toBeGreaterThan(10);
    await until(async () => (await sessionsOf("carla/blog")).length === 0, { message: "the tables to follow" });
    const open = (await sessionsOf("alice/shop"))[0]?.session ?? "";
    const refused = ask("erase", "--session", open, "--yes");
    expect(await refused.ended).toBe(1);
    expect(refused.stderr()).toContain("is still running: end it first");

    const file = join(dev, "event-log-file.v1.ndjson");
    const imported = ["import", file, "--developer", "Dora B", "--project", "shop"];
    const printed = ask(...imported);
    expect(await printed.ended).toBe(0);
    expect(printed.stdout()).toMatch(/^dora-b\/shop: recorded \d+ messages of the process that began [^\n]+\n$/);
    const again = await json<{ source: string; processes: { session?: string }[] }>(...imported);
    expect(again.source).toBe("dora-b/shop");
    // The tables follow the log; its end is the last of a session.
    const known = await until(async () => (await sessionsOf("dora-b/shop")).find(({ endedAt }) => endedAt !== null), {
      message: "the imported session to be listed",
    });
    expect(again.processes.map((process) => process.session)).toEqual([known.session]);

    const before = await json<Items<unknown>>("stats", "builds", "--group", "artifact,project");
    const rebuilt = ask("rebuild");
    expect(await rebuilt.ended).toBe(0);
    // How far it is comes after it where the machine is slow.
    expect(rebuilt.stderr()).toContain(`tapedeck: rebuild at ${up.env.TAPEDECK_URL}\n`);
    expect(await json<Items<unknown>>("stats", "builds", "--group", "artifact,project")).toMatchObject({
      items: before.items,
    });
  });

  it("killed, it leaves nothing behind that runs, and the next start has what was recorded", async () => {
    const before = (await json<Items<Session>>("sessions")).items.length;
    const all = Object.keys(killed).map((name) => childOf(up.cli.child.pid ?? 0, name));
    up.cli.child.kill("SIGKILL");
    await up.cli.ended;
    const isRunning = (pid: number) => spawnSync("ps", ["-p", String(pid)]).status === 0;
    await until(() => !all.some(isRunning), { message: "servers and services to end" });
    up = await start();
    await until(async () => (await json<Items<Session>>("sessions")).items.length >= before, { message: "the same" });
  });

  it("says no more than that it stops where its servers and services get the signal, too", async () => {
    const all = Object.keys(killed).map((name) => childOf(up.cli.child.pid ?? 0, name));
    up.cli.child.kill("SIGINT");
    await until(() => up.cli.stdout().includes("stopping …"), { message: "the signal to be heard" });
    for (const pid of all) spawnSync("kill", [String(pid)]); // it may be gone already
    await up.cli.ended;
    expect(up.cli.stdout()).toMatch(/\nstopping …\n$/);
    up = await start();
  });
});
