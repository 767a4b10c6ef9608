import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { collect, startCli } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { describe, expect, it } from "vitest";
import { cuttingProxy } from "../transports/cutting-proxy.ts";
import { startStack } from "./stack.ts";

/** A stack that records alice/shop, whose Skaffold the test plays, and a folder for commands. */
async function recordedAlice() {
  await using cleanup = new AsyncDisposableStack();
  const cwd = mkdtempSync(join(tmpdir(), "watch-"));
  cleanup.defer(() => rmSync(cwd, { recursive: true, force: true }));
  const recording = loadRecording(recordingFolder("04-deploy-failure-then-recovery"));
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  const stack = cleanup.use(
    await startStack({ skaffold: [{ developer: "alice", project: "shop", address: fake.address }] }),
  );
  const owned = cleanup.move();
  return { cwd, fake, stack, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

it("`tapedeck watch` prints loops as they run, fail and are good again, and ends with Ctrl-C", async () => {
  await using on = await recordedAlice();
  const { cwd, fake, stack } = on;
  const env = { TAPEDECK_URL: `http://${stack.http}` };
  await using cli = startCli(["watch", "-s", "alice/shop"], { cwd, env });
  await until(() => cli.stdout().includes("alice/shop"), { message: "the source to be shown" });
  await fake.play();
  const words = () => [...cli.stdout().matchAll(/alice\/shop {2}(\w+)/g)].map(([, word]) => word);
  // The second loop fails, the third is good, and the fourth fails.
  await until(() => words().lastIndexOf("failed") > words().lastIndexOf("ok") && words().includes("ok"), {
    message: "the last loop to have failed",
  });
  expect(words()).toContain("running");
  expect(cli.stdout()).toMatch(/failed {2}deploy\S*: \S/);
  process.kill(cli.child.pid ?? 0, "SIGINT");
  expect([await cli.ended, cli.stderr()]).toEqual([0, ""]);

  await using nobody = startCli(["watch"], { cwd, env: { TAPEDECK_URL: "http://127.0.0.1:1" } });
  expect([await nobody.ended, nobody.stderr()]).toEqual([1, expect.stringContaining("no Tapedeck server answers")]);
});

const hasScript = spawnSync("script", ["--version"]).status === 0;

describe.skipIf(!hasScript)("`tapedeck watch` in a terminal", () => {
  const main = fileURLToPath(new URL("../../packages/cli/bin/tapedeck.mjs", import.meta.url));
  const [alternate, normal] = ["\u001b[?1049h", "\u001b[?1049l"];
  const [hidden, shown] = ["\u001b[?25l", "\u001b[?25h"];

  /** The command in a terminal of 100 columns, which writes its own settings to files before and after it. */
  function inTerminal(cwd: string, url: string) {
    const shell = `stty cols 100 rows 20; tty >tty; stty -g >before; "${process.execPath}" "${main}" watch; code=$?; stty -g >after; exit $code`;
    // Nothing else of where the tests run: NO_COLOR, CI and others say there whether and how colours are drawn.
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
    const env = {
      PATH,
      HOME,
      NODE_COMPILE_CACHE,
      XDG_CONFIG_HOME: join(cwd, "config"),
      TAPEDECK_URL: url,
      TERM: "xterm-256color",
    };
    const terminal = collect(spawn("script", ["-qec", shell, "/dev/null"], { cwd, env, stdio: "pipe" }));
    return {
      terminal,
      press: (keys: string) => terminal.child.stdin?.write(keys),
      resize: (columns: number) =>
        execFileSync("stty", ["-F", readFileSync(join(cwd, "tty"), "utf8").trim(), "cols", String(columns)]),
      settings: () => ["before", "after"].map((name) => readFileSync(join(cwd, name), "utf8")),
    };
  }

  it("draws in colours, to its size, through a lost connection, and leaves the terminal as it was with q", async () => {
    await using on = await recordedAlice();
    const { cwd, fake, stack } = on;
    let server = stack.http;
    await using proxy = await cuttingProxy(() => server);
    await fake.playUntil({ v1: 17 });
    await stack.drained(fake);
    const { terminal, press, resize, settings } = inTerminal(cwd, `http://${proxy.address}`);
    await using _ = terminal;
    const since = (from: number) => stripVTControlCharacters(terminal.stdout().slice(from));
    const drawn = (text: string, from = 0) =>
      until(() => since(from).includes(text), {
        message: `"${text}" to be drawn in ${JSON.stringify(terminal.stdout())}`,
      });
    await drawn("✓✕");
    expect(terminal.stdout()).toContain(alternate);
    expect(terminal.stdout()).toContain(hidden);
    // The failed step is red.
    expect(terminal.stdout()).toContain("\u001b[31m✕ deploy");
    expect(since(0)).toMatch(/alice\/shop {2}✕ deploy {2}\S.* for \S.*✓✕/);

    const wide = terminal.stdout().length;
    resize(50);
    await drawn("✓✕", wide);
    const narrow = since(wide).split(/\r?\n/);
    expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(50);
    resize(100);

    const connected = terminal.stdout().length;
    server = "127.0.0.1:1";
    proxy.cutAll();
    await drawn("no connection (", connected);
    await fake.play();
    await stack.drained(fake);
    server = stack.http;
    // It continues where it was: the last loops have all been seen.
    await drawn("✓✕✓✕", connected);
    const restored = terminal.stdout().length;
    press("q");
    expect(await terminal.ended).toBe(0);
    const [, last = ""] = terminal.stdout().slice(restored).split(normal);
    expect(terminal.stdout().lastIndexOf(shown)).toBeGreaterThan(terminal.stdout().lastIndexOf(hidden));
    expect(stripVTControlCharacters(last)).toMatch(/FAILING\r\nalice\/shop {2}✕ render {2}.*✓✕✓✕\r\n/);
    expect(last).not.toContain("no connection");
    const [before, after] = settings();
    expect(after).toBe(before);
  });

  it.each([
    ["Ctrl-C", "\u0003"],
    ["q", "q"],
  ])("ends with %s before anything is recorded, too", async (_, key) => {
    const cwd = mkdtempSync(join(tmpdir(), "watch-"));
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => rmSync(cwd, { recursive: true, force: true }));
    const stack = cleanup.use(await startStack({ skaffold: [] }));
    const { terminal, press, settings } = inTerminal(cwd, `http://${stack.http}`);
    cleanup.use(terminal);
    await until(() => terminal.stdout().includes("No sources yet"), { message: "the empty screen" });
    press(key);
    expect(await terminal.ended).toBe(0);
    const [before, after] = settings();
    expect(after).toBe(before);
    expect(terminal.stdout().split(normal)[1]).toContain("No sources yet");
  });
});
