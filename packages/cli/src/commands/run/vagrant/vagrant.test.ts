import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { collect, startCli } from "../../../testing/cli.ts";
import { startRecorder } from "../../../testing/recorder.ts";
import { canSeeSockets } from "../sockets.ts";
import { reported, testEnds, testRecorded, vagrantProjects } from "../testing/vagrant.ts";

const project = vagrantProjects();
const find = canSeeSockets() ? "sockets" : "log";

// Servers that are found by their log have their tests in vagrant.long.test.ts.
describe(`tapedeck run of a vagrant that is found by its ${find}`, () => {
  testRecorded(project, find);
  testEnds(project, find);
});

describe("tapedeck run of a vagrant", () => {
  it("keeps what was heard while no Tapedeck is there", async () => {
    const { cwd, env, left } = project("failing");
    const cli = startCli(["run", "--", "vagrant", "up"], { cwd, env });
    expect(await cli.ended).toBe(1);
    expect(cli.stderr()).toMatch(/tapedeck: not recorded yet \(nothing listens at \S+\): the recording waits in/);
    expect(left()).toHaveLength(1);
  });

  it("shows of the log what the user asked for", async () => {
    await using recorder = await startRecorder();
    const { cwd, env } = project("succeeding", recorder);
    const cli = startCli(["run", "--find", "log", "--", "vagrant", "up"], {
      cwd,
      env: { ...env, VAGRANT_LOG_LEVEL: "warn" },
    });
    expect(await cli.ended).toBe(0);
    expect(cli.stderr()).toMatch(/^\S+ \[WARN\] {2}vagrant: no plugins\n==> web: a deprecated setting\ndone$/);
    expect(reported(cli.stdout())[0]).toMatchObject({ level: "info" });

    const loud = startCli(["run", "--find", "log", "--", "vagrant", "up"], {
      cwd,
      env: { ...env, VAGRANT_LOG_LEVEL: "info" },
    });
    expect(await loud.ended).toBe(0);
    expect(loud.stderr()).toContain("starting built-in server");
    expect(loud.stderr()).toContain("  | two");
  });

  it("does not fill a terminal with the log", async ({ skip }) => {
    if (spawnSync("script", ["--version"]).status !== 0) skip("there is no program `script` here");
    const { cwd, env, left } = project("none");
    const main = fileURLToPath(new URL("../../../main.ts", import.meta.url));
    const line = `"${process.execPath}" "${main}" run --find log -- vagrant up`;
    const options = { cwd, env: { ...process.env, ...env } };
    const cli = collect(spawn("script", ["-qec", line, "/dev/null"], { ...options, stdio: ["pipe", "pipe", "pipe"] }));
    expect(await cli.ended).toBe(4);
    const [output = "", started = ""] = cli.stdout().trim().split("\r\n");
    expect(output).toMatch(/^tapedeck: this command is not recorded: .* would fill your terminal: /);
    expect(JSON.parse(started)).toEqual({ args: ["up"], tty: true });
    expect(left()).toEqual([]);
  });

  it.each([
    { args: ["--version"], with: {} },
    { args: ["up", "-h"], with: {} },
    { args: ["up"], with: { TAPEDECK_OFF: "1" } },
    { args: ["up"], with: { TAPEDECK_RUN: "vagrant" } },
  ])("of $args with $with is the command and nothing else", async ({ args, with: more }) => {
    const { cwd, env, left } = project("none");
    const cli = startCli(["run", "--", "vagrant", ...args], { cwd, env: { ...env, ...more } });
    expect(await cli.ended).toBe(4);
    expect(cli.stderr()).toBe("");
    expect(left()).toEqual([]);
  });

  it("names the server that it would have to record instead", async () => {
    const { cwd, env } = project("none");
    const cli = startCli(["run", "--", "vagrant", "up"], {
      cwd,
      env: { ...env, VAGRANT_SERVER_ADDR: "10.0.0.7:9701" },
    });
    expect(await cli.ended).toBe(4);
    expect(cli.stderr()).toBe(
      "tapedeck: this command is not recorded: it uses the server at 10.0.0.7:9701: record that with `tapedeck record --upstream vagrant`\n",
    );
  });
});
