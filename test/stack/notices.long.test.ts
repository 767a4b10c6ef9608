import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { installNoticeProgram } from "tapedeck/testing/notice-program";
import { installProgram } from "tapedeck/testing/program";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

// No desktop is where tests run: a program of the test has the name notify-send, and writes down what it is given.

const folder = mkdtempSync(join(tmpdir(), "notices-"));
installProgram(join(folder, "bin"), "vagrant");
const path = installSkaffold(join(folder, "bin"));
const failsThenGood = recordingFolder("04-deploy-failure-then-recovery");
const cleanup = new AsyncDisposableStack();
let stack: Stack;

beforeAll(async () => {
  stack = cleanup.use(await startStack({}));
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

/** A user's folder, with notices. */
function project(name: string) {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  writeFileSync(join(cwd, "Vagrantfile"), "");
  const { shown } = installNoticeProgram(join(cwd, "desktop"), "notify-send");
  const env = {
    PATH: `${join(cwd, "desktop")}:${path}`,
    TAPEDECK_SPILL: join(cwd, "spill"),
    TAPEDECK_DEVELOPER: "alice",
    TAPEDECK_PROJECT: name,
    TAPEDECK_NOTIFY: "1",
    TAPEDECK_URL: `http://${stack.http}`,
    TAPEDECK_GRPC_PORT: stack.grpc.split(":").at(-1) ?? "",
    STAND_IN_NOW: "1",
  };
  return { cwd, env, notices: () => shown().map(([, , title = "", text = ""]) => ({ title, text })) };
}

it("`tapedeck watch --notify` shows what fails and what is good again on the desktop, and prints the same", async () => {
  const cwd = mkdtempSync(join(folder, "watch-"));
  const { shown } = installNoticeProgram(join(cwd, "bin"), "notify-send");
  await using fake = await startFakeSkaffold({ recording: loadRecording(failsThenGood) });
  await using own = await startStack({ skaffold: [{ developer: "alice", project: "shop", address: fake.address }] });
  const env = { TAPEDECK_URL: `http://${own.http}`, PATH: `${join(cwd, "bin")}:${path}` };
  await using cli = startCli(["watch", "--notify"], { cwd, env });
  await until(() => cli.stdout().includes("alice/shop"), { message: "the source to be shown" });
  await fake.playUntil({ v1: 17 });
  await until(() => shown().length === 1, { message: "the notice of the failure" });
  // Before the fourth loop, which fails again.
  await fake.playUntil({ v1: 24 });
  await until(() => shown().length === 2, { message: "the notice that it is good again" });
  expect(shown()).toEqual([
    ["--app-name=Tapedeck", "--", expect.stringMatching(/^alice\/shop: deploy.* failed$/), expect.stringMatching(/\S/)],
    ["--app-name=Tapedeck", "--", "alice/shop is good again", expect.stringMatching(/^after .*the last loop took/)],
  ]);
  process.kill(cli.child.pid ?? 0, "SIGINT");
  expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);
  expect(cli.stdout()).not.toContain("noise");
});

it("`tapedeck run` shows each failure of its loops and that they are good again, and exits as the command does", async () => {
  const { cwd, env, notices } = project("shop");
  const loops = join(cwd, "loops");
  mkdirSync(loops);
  const own = { STAND_IN_RECORDING: failsThenGood, STAND_IN_LOOPS: loops };
  await using cli = startCli(["run", "--", "skaffold", "dev"], { cwd, env: { ...env, ...own } });
  writeFileSync(join(loops, "2"), "");
  await until(() => notices().length === 1, { message: "the notice of the failure" });
  writeFileSync(join(loops, "3"), "");
  await until(() => notices().length === 2, { message: "the notice that it is good again" });
  // The text is the cause, unless this took too long on a busy machine.
  expect(notices()).toEqual([
    { title: expect.stringMatching(/^alice\/shop: deploy.* failed$/), text: expect.stringMatching(/\S/) },
    { title: "alice/shop is good again", text: expect.stringMatching(/^after .*the last loop took/) },
  ]);
  process.kill(cli.child.pid ?? 0, "SIGINT");
  expect(await cli.ended).toBe(0);
  expect(cli.stdout()).not.toContain("noise");
  expect(notices()).toHaveLength(2);
});

it("a command that ends with its failure is shown with its cause, and the next one that is good, too", async () => {
  const { cwd, env, notices } = project("machines");
  const run = async (kind: string, ...flags: string[]) => {
    const more = { ...env, STAND_IN_RUN: kind };
    await using cli = startCli(["run", ...flags, "--", "vagrant", "up"], { cwd, env: more });
    return await cli.ended;
  };
  expect(await run("failing")).toBe(1);
  await until(() => notices().length === 1, { message: "the notice of the failure" });
  // It has the cause, unless this took too long on a busy machine.
  expect(notices()[0]?.title).toMatch(/vagrant.*(failed|exit code 1)$/);
  await stack.caughtUp();
  expect(await run("succeeding")).toBe(0);
  await until(() => notices().length === 2, { message: "the notice that it is good again" });
  expect(notices()[1]?.title).toBe("alice/machines/vagrant is good again");
});

it("without the setting nothing is shown, and where nothing shows notices a line reports it", async () => {
  const { cwd, env, notices } = project("quiet");
  const own = { STAND_IN_RUN: "failing" };
  const cases = [
    { other: { TAPEDECK_NOTIFY: "0" }, lines: 0 },
    { other: { PATH: path }, lines: 1 },
  ];
  for (const { other, lines } of cases) {
    await using cli = startCli(["run", "--", "vagrant", "up"], { cwd, env: { ...env, ...own, ...other } });
    expect(await cli.ended).toBe(1);
    expect(cli.stderr().match(/.*(?:notify|osascript|noise).*/g) ?? []).toHaveLength(lines);
  }
  expect(notices()).toEqual([]);
});
