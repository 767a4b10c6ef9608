import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runningUp } from "../../local-server/lock.ts";
import { type RunningCli, startCli } from "../../testing/cli.ts";
import { installSkaffold, recordingFolder } from "../../testing/skaffold-program.ts";
import { startUp, type TestUp } from "../../testing/up.ts";

const dev = recordingFolder("01-dev-success-3-artifacts-5-iterations");
const build = recordingFolder("12-skaffold-build-one-shot");

type Items<Item> = { readonly items: readonly Item[] };
type Session = {
  readonly session: string;
  readonly source: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly endedAt: string | null;
};
describe("tapedeck up", () => {
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-up-"));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
  const path = installSkaffold(join(cwd, "bin"));
  let fake: FakeSkaffold;
  let up: TestUp;

  beforeAll(async () => {
    writeFileSync(
      join(cwd, "tapedeck.yaml"),
      "sources:\n  - { developer: zoe, project: blog, address: '127.0.0.1:9' }\n",
    );
    fake = await startFakeSkaffold({ recording: loadRecording(dev) });
    up = await start();
  });
  afterAll(async () => {
    await up?.stop();
    await fake?.[Symbol.asyncDispose]();
    rmSync(cwd, { recursive: true, force: true });
  });

  const start = () =>
    startUp({
      cwd,
      args: ["--skaffold", fake.address, "--developer", "Alice B", "--project", "shop", "--label", "team=web"],
    });
  const ask = (...args: string[]): RunningCli =>
    startCli(args, { cwd, env: { ...up.env, PATH: path, STAND_IN_RECORDING: build } });
  const json = async <Answer>(...args: string[]): Promise<Answer> => {
    const cli = ask(...args, "--json");
    expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);
    return JSON.parse(cli.stdout()) as Answer;
  };
  const sessionsOf = async (source: string) => (await json<Items<Session>>("sessions", "-s", source)).items;

  it("says where it is and what to try, in 80 columns", () => {
    const output = up.cli.stdout();
    expect(output).toContain("Tapedeck records 2 sources.");
    expect(output).toContain(`Alice B/shop (${fake.address})`);
    expect(output).toContain(`http://${up.running.addresses.http}`);
    const wide = output
      .split("\n")
      .filter((line) => line.length > 80 && !line.includes("/tapedeck") && !line.includes("psql"));
    expect(wide).toEqual([]);
  });

  it("records a Skaffold that runs beside it", async () => {
    await fake.play();
    await until(async () => (await sessionsOf("alice-b/shop")).length === 1, { message: "the session" });
    const [session] = await sessionsOf("alice-b/shop");
    expect(session).toMatchObject({ source: "default/alice-b/shop/skaffold", labels: { team: "web" }, endedAt: null });
    await until(
      async () => {
        const { items } = await json<Items<{ count: number; artifact: string }>>("stats", "builds");
        expect(Object.fromEntries(items.map(({ artifact, count }) => [artifact, count]))).toEqual({
          api: 2,
          web: 3,
          worker: 2,
        });
        return true;
      },
      { message: "all builds in the tables" },
    );
    await until(
      async () => {
        expect(await json<object>("status")).toMatchObject({
          sources: [
            { source: "default/alice-b/shop/skaffold", status: "recording", address: fake.address },
            { source: "default/zoe/blog/skaffold", status: "waiting", address: "127.0.0.1:9" },
          ],
          spillBytes: 0,
          problems: [],
        });
        // The last deploy comes after the last build.
        const { state } = await json<{ state: { v1: { deployState: { status: string } } } }>("state");
        expect(state.v1.deployState.status).toBe("Complete");
        return true;
      },
      { message: "the status and the state" },
    );
    const nowhere = ask("state", "--session", "01KE3M9Z6Q4W8T2V5X7Y9A1B3C");
    expect(await nowhere.ended).toBe(1);
    expect(nowhere.stderr()).toBe(
      "tapedeck: there is no session 01KE3M9Z6Q4W8T2V5X7Y9A1B3C: see `tapedeck sessions`.\n",
    );
  });

  it("is one for its data: a second one says so and stops", async () => {
    const second = startCli(["up"], { cwd });
    expect(await second.ended).toBe(1);
    const { pid, addresses } = up.running;
    expect(second.stderr()).toBe(
      `tapedeck: Tapedeck already runs here (process ${pid}, http://${addresses.http}): use it, or stop it first (Ctrl-C in its terminal, or kill ${pid}).\n`,
    );
  });

  it("takes what waited from before, if it is meant for this one", async () => {
    const env = { PATH: path, XDG_STATE_HOME: up.env.XDG_STATE_HOME, STAND_IN_RECORDING: build };
    const away = startCli(["run", "--url", "127.0.0.1:10", "--developer", "bob", "--", "skaffold", "build"], {
      cwd,
      env,
    });
    expect(await away.ended).toBe(0);
    expect((await json<{ waitingSpills: number }>("status")).waitingSpills).toBe(1);
    // The spill looks as if it had been there when that ran.
    const home = join(`${up.env.XDG_STATE_HOME}`, "tapedeck", "spill");
    const [folder = ""] = readdirSync(home).filter((name) => !name.includes("."));
    const file = join(home, folder, "tap.json");
    const port = `${up.running.addresses.grpc}`.split(":").at(-1);
    writeFileSync(file, readFileSync(file, "utf8").replace("127.0.0.1:9", `localhost:${port}`));
    const waited = async () =>
      (await json<Items<Session>>("sessions")).items.find(({ source }) => source.includes("/bob/"));
    await until(async () => (await waited())?.endedAt, { message: "bob's run to be taken from its spill" });
    expect((await waited())?.labels).toMatchObject({ command: "skaffold build" });
    const reported = () => up.cli.stdout().includes("delivered the waiting recording of bob/");
    await until(reported, { message: "`up` to say so" });
  });

  it("stops in order at Ctrl-C, and keeps what it has", async () => {
    const before = (await json<Items<Session>>("sessions")).items.length;
    const { pid } = up.running;
    expect(await up.stop()).toBe(0);
    expect(up.cli.stderr()).toBe("");
    expect(await runningUp(join(cwd, ".tapedeck"))).toBeUndefined();
    expect(fake.hung).toEqual([]);
    expect(() => process.kill(pid, 0)).toThrow();
    up = await start();
    await until(async () => (await json<Items<Session>>("sessions")).items.length === before, { message: "the same" });
  });
});
