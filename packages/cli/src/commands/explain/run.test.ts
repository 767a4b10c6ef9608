import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { collect, startCli } from "../../testing/cli.ts";

const main = fileURLToPath(new URL("../../../bin/tapedeck.mjs", import.meta.url));
const failed = "cc -c pump.c\npump.c:6:20: error: no member named 'flow'\nmake: *** [all] Error 2\n";

/** Runs `tapedeck explain` with an output on its stdin. */
async function explained(input: string, args: readonly string[]) {
  await using cli = collect(spawn(process.execPath, [main, "explain", ...args], { stdio: "pipe" }));
  cli.child.stdin?.end(input);
  return { code: await cli.ended, stdout: cli.stdout(), stderr: cli.stderr() };
}

it("explains a file", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-"));
  writeFileSync(join(cwd, "build.log"), failed);
  await using cli = startCli(["explain", "build.log"], { cwd });
  expect(await cli.ended).toBe(0);
  expect(cli.stdout()).toBe("compile error  pump.c:6\n  pump.c:6:20: error: no member named 'flow'\n");
});

it("explains standard input, as JSON for programs", async () => {
  for (const args of [["--json"], ["-", "--json"]]) {
    const { code, stdout } = await explained(failed, args);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toStrictEqual({
      cause: "pump.c:6:20: error: no member named 'flow'",
      reason: "compile error",
      file: "pump.c",
      line: 6,
      advice: null,
    });
  }
});

it("prints nothing where nothing failed", async () => {
  expect(await explained("compiling error.c\n0 errors\n", [])).toEqual({ code: 0, stdout: "", stderr: "" });
});

it("refuses a file that can't be read", async () => {
  await using cli = startCli(["explain", "missing.log"], { cwd: tmpdir() });
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toBe("tapedeck: missing.log can't be read (ENOENT).\n");
});
