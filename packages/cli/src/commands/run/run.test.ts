import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { until } from "@tapedeck/shared/testing/until";
import { openSpill } from "@tapedeck/tap/spill/spill";
import { describe, expect, it } from "vitest";
import { onPath } from "../../on-path.ts";
import { startCli } from "../../testing/cli.ts";
import { startRecorder, urlOf } from "../../testing/recorder.ts";
import { build, framesOf, messagesOf, nobody, projects, reported } from "./testing/projects.ts";

const project = projects();

async function readSpill(dir: string) {
  await using spill = await openSpill({ dir });
  const items: Item[] = [];
  const over = new AbortController();
  const { nextIndex } = spill.state();
  for await (const item of spill.read(1n, over.signal)) {
    items.push(item);
    if (item.index === nextIndex - 1n) over.abort();
  }
  return { hello: spill.hello(), items };
}

// What kills leave, and signals that are late: run.long.test.ts.
describe("tapedeck run", () => {
  it("keeps everything that a short command said, with its exit code, until Tapedeck is there", async () => {
    const { cwd, env, spill, waiting } = project();
    const cli = startCli(["run", "--label", "ticket=7", "--", "skaffold", "build"], {
      cwd,
      env: { ...env, STAND_IN_EXIT: "3" },
    });
    expect(await cli.ended).toBe(3);
    expect(reported(cli.stdout())[0]).toMatchObject({ args: ["build"] });
    expect(cli.stderr()).toMatch(
      /^tapedeck: not recorded yet \(nothing listens at 127.0.0.1:9\): the recording waits in .* for the next `npm --prefix \S+ start -- --no-demo`\n$/,
    );

    const [folder = ""] = waiting();
    const { hello, items } = await readSpill(join(spill, folder));
    expect(framesOf(items, "v1")).toEqual(messagesOf(build, "v1"));
    expect(framesOf(items, "v2")).toEqual(messagesOf(build, "v2"));
    expect(items.at(-1)?.what).toMatchObject({
      $case: "closed",
      value: { process_ended: true, exit_code: 3, command_run: { command_line: "skaffold build", exit_code: 3 } },
    });
    expect(hello).toMatchObject({ developer: "alice", project: "shop", upstream: "skaffold", redact: "on" });
    expect(hello.labels).toMatchObject({ ticket: "7", command: "skaffold build", user: expect.any(String) });
  });

  it("hands everything to the Tapedeck that is there, says nothing, and leaves nothing behind", async () => {
    await using recorder = await startRecorder();
    const { cwd, env, waiting } = project();
    const cli = startCli(["run", "--url", recorder.url, "--", "skaffold", "build"], { cwd, env });
    expect(await cli.ended).toBe(0);
    expect(cli.stderr()).toBe("");
    expect(framesOf(recorder.items, "v1")).toEqual(messagesOf(build, "v1"));
    expect(framesOf(recorder.items, "v2")).toEqual(messagesOf(build, "v2"));
    expect(waiting()).toEqual([]);
  });

  const hasNotifier = ["notify-send", "osascript"].some((program) => onPath(program) !== undefined);
  it.skipIf(hasNotifier)("reports once that notices can't be shown, and the command ends as without them", async () => {
    await using recorder = await startRecorder();
    const { cwd, env } = project();
    const cli = startCli(["run", "--notify", "--url", recorder.url, "--", "skaffold", "build"], {
      cwd,
      env: { ...env, STAND_IN_EXIT: "3" },
    });
    expect(await cli.ended).toBe(3);
    expect(cli.stderr()).toBe("tapedeck: notices can't be shown: neither osascript nor notify-send is on the PATH\n");
  });

  it("says why Tapedeck does not take it, and keeps it", async () => {
    await using recorder = await startRecorder({ refusal: { code: 9, details: "the demo takes no recordings" } });
    const { cwd, env, waiting } = project();
    const cli = startCli(["run", "--url", recorder.url, "--", "skaffold", "dev"], { cwd, env });
    // Said while the command runs.
    await until(() => cli.stderr().includes("\n"), { message: "the refusal to be reported" });
    await until(() => reported(cli.stdout()).length > 0, { message: "the command to run" });
    process.kill(cli.child.pid ?? 0, "SIGINT");
    expect(await cli.ended).toBe(0);
    const [first, last] = cli.stderr().split("\n");
    expect(first).toBe("tapedeck: not recorded for now: the demo takes no recordings; events are kept on this machine");
    expect(last).toContain("not recorded yet (the demo takes no recordings): the recording waits in");
    expect(waiting()).toHaveLength(1);
  });

  it.each([
    ["SIGINT", "to us alone"],
    ["SIGINT", "to all"],
    ["SIGTERM", "to us alone"],
    ["SIGTERM", "to all"],
  ] as const)("passes %s that comes %s to the command, once", async (signal, whom) => {
    const { cwd, env } = project();
    const cli = startCli(["run", "--", "skaffold", "dev"], { cwd, env });
    await until(() => reported(cli.stdout()).length > 0, { message: "the command to run" });
    const pid = cli.child.pid ?? 0;
    process.kill(whom === "to all" ? -pid : pid, signal);
    expect(await cli.ended).toBe(0);
    expect(reported(cli.stdout()).filter((line) => line.signal !== undefined)).toEqual([{ signal }]);
  });

  it("records the line and the exit code of a command that starts Skaffold as that command's", async () => {
    const { cwd, env, spill, waiting } = project();
    const command = "skaffold build; exit 4";
    const cli = startCli(["run", "--", "sh", "-c", command], { cwd, env });
    expect(await cli.ended).toBe(4);
    const { items } = await readSpill(join(spill, waiting()[0] ?? ""));
    const closed = items.at(-1)?.what;
    expect(closed).toMatchObject({
      $case: "closed",
      value: {
        process_ended: true,
        command_run: { command_line: `sh -c '${command}'`, exit_code: 4, wrapper: true, ended_at: expect.anything() },
      },
    });
    expect(closed?.$case === "closed" && closed.value.exit_code).toBeUndefined();
  });

  it("passes a signal on that comes in the very moment in which the command starts", async () => {
    const { cwd, env } = project();
    const command = "trap 'exit 5' TERM; kill -TERM $PPID; for _ in $(seq 2000); do sleep 0.05; done";
    const cli = startCli(["run", "--", "sh", "-c", command], { cwd, env });
    expect(await cli.ended).toBe(5);
  });

  it("dies of the signal that its command died of", async () => {
    const { cwd, env } = project();
    const cli = startCli(["run", "--", "sh", "-c", "kill -KILL $$"], { cwd, env });
    expect(await cli.ended).toBe("SIGKILL");
  });

  it.each([{ TAPEDECK_OFF: "1" }, { TAPEDECK_RUN: "vagrant,skaffold" }])(
    "with %o is the command and nothing else",
    async (off) => {
      const { cwd, env, waiting } = project();
      const cli = startCli(["run", "--", "sh", "-c", "echo $$ ; exit 4"], { cwd, env: { ...env, ...off } });
      expect(await cli.ended).toBe(4);
      expect(Number(cli.stdout())).toBe(cli.child.pid);
      const build = startCli(["run", "--", "skaffold", "build"], { cwd, env: { ...env, ...off } });
      expect(await build.ended).toBe(0);
      expect(reported(build.stdout())[0]).toMatchObject({ args: ["build"] });
      expect(waiting()).toEqual([]);
    },
  );

  it("runs the command with one warning when it can't be recorded", async () => {
    const { cwd, env } = project();
    const cli = startCli(["run", "--", "sh", "-c", "exit 6"], { cwd, env: { ...env, SKAFFOLD_RPC_PORT: "0" } });
    expect(await cli.ended).toBe(6);
    expect(cli.stderr()).toBe("tapedeck: this command is not recorded: --rpc-port 0 is not a fixed port\n");

    const render = startCli(["run", "--", "skaffold", "render"], { cwd, env });
    expect(await render.ended).toBe(0);
    expect(render.stderr()).toBe("tapedeck: this command is not recorded: skaffold render has no --rpc-port\n");

    const file = join(cwd, "file");
    cpSync(join(cwd, "skaffold.yaml"), file);
    const full = startCli(["run", "--spill", join(file, "spill"), "--", "skaffold", "build"], { cwd, env });
    expect(await full.ended).toBe(0);
    expect(full.stderr()).toMatch(/^tapedeck: .*spill can't be written \(.*\): short commands may not be recorded\n/);
  });

  it.each([
    [{ TAPEDECK_URL: "tapedeck.example" }, /tapedeck.example is not an address: use https:\/\/tapedeck.example/],
    [{ TAPEDECK_URL: "10.0.0.5:7052" }, /10.0.0.5:7051 is not on this machine/],
    [{ TAPEDECK_URL: "10.0.0.5:7052", TAPEDECK_TOKEN: "tdk_x" }, /the token of TAPEDECK_TOKEN is not sent/],
    [{ TAPEDECK_TOKEN: "no token" }, /TAPEDECK_TOKEN is not a token/],
    [{ TAPEDECK_URL: "https://localhost:9", TAPEDECK_CA: "/no/such/file" }, /TAPEDECK_CA.* can't be read/],
    [{ TAPEDECK_URL: "https://localhost:9", TAPEDECK_CA: "broken.pem" }, /TAPEDECK_CA.* holds no certificate/],
  ])("with %o runs the command as it is, with one warning before it", async (wrong, reason) => {
    const { cwd, env, waiting } = project();
    writeFileSync(join(cwd, "broken.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    const cli = startCli(["run", "--", "sh", "-c", "echo >&2 running as $$ $SKAFFOLD_RPC_PORT; exit 7"], {
      cwd,
      env: { ...env, ...wrong },
    });
    expect(await cli.ended).toBe(7);
    const [first = "", ...more] = cli.stderr().split("\n");
    expect(first).toMatch(/^tapedeck: this command is not recorded: /);
    expect(first).toMatch(reason);
    expect(more).toEqual([`running as ${cli.child.pid}`, ""]);
    expect(waiting()).toEqual([]);
  });

  it("keeps the token to itself, and prints the session at its start and its end", async () => {
    await using recorder = await startRecorder({ session: "01SESSION" });
    const { cwd, env } = project();
    const command = ["sh", "-c", "printenv TAPEDECK_TOKEN || echo token: none; skaffold build"];
    const more = { TAPEDECK_TOKEN: "tdk_x", TAPEDECK_URL: recorder.url, STAND_IN_NOW: "1" };
    const cli = startCli(["run", "--", ...command], { cwd, env: { ...env, ...more } });
    expect(await cli.ended).toBe(0);
    expect(cli.stdout()).toContain("token: none\n");
    const where = `as alice/shop, session 01SESSION: ${recorder.url}/sessions/01SESSION`;
    expect(cli.stderr()).toBe(`tapedeck: recording ${where}\ntapedeck: recorded ${where}\n`);
  });

  it("says before the command starts which name does not fit, and what it becomes", async () => {
    const { cwd, env } = project();
    const names = ["--developer", "Dora B", "--project", "shop"];
    const cli = startCli(["run", ...names, "--url", urlOf(nobody), "--", "sh", "-c", "echo >&2 running"], { cwd, env });
    expect(await cli.ended).toBe(0);
    expect(cli.stderr()).toBe('tapedeck: developer "Dora B" is recorded as dora-b\nrunning\n');
  });

  it("ends as its command does after an error of its own that nothing has caught", async () => {
    const { cwd, env } = project();
    const broken = join(cwd, "break.mjs");
    writeFileSync(
      broken,
      `import { existsSync, writeFileSync } from "node:fs";
      if (process.argv.includes("run")) setInterval(() => {
        if (!existsSync("ready") || existsSync("broken")) return;
        writeFileSync("broken", "");
        throw new Error("no more room");
      }, 20).unref();`,
    );
    const command = "touch ready; until [ -e broken ]; do sleep 0.05; done; sleep 0.2; exit 6";
    const cli = startCli(["run", "--", "sh", "-c", command], {
      cwd,
      env: { ...env, NODE_OPTIONS: `--import=${broken}` },
    });
    expect(await cli.ended).toBe(6);
    expect(cli.stderr()).toBe("tapedeck: the recording of this command has stopped: no more room\n");
  });

  it("says what a shell says of a command that is not there", async () => {
    const { cwd, env } = project();
    const cli = startCli(["run", "--", "no-such-command"], { cwd, env });
    expect(await cli.ended).toBe(127);
    expect(cli.stderr()).toBe("tapedeck: no-such-command: command not found\n");

    const other = startCli(["run", "--", "./skaffold.yaml"], { cwd, env });
    expect(await other.ended).toBe(126);
    expect(other.stderr()).toBe("tapedeck: ./skaffold.yaml can't be run: permission denied\n");
  });
});
