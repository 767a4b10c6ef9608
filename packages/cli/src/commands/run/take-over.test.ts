import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { projects } from "./testing/projects.ts";

const project = projects();
const cli = fileURLToPath(new URL("../../../bin/tapedeck.mjs", import.meta.url));
const off = { TAPEDECK_OFF: "1" };
const isLinux = existsSync("/proc/self/fdinfo");

/** Runs a shell's words between two pipes. */
function between(words: string, cwd: string, env: Readonly<Record<string, string>>): string {
  const all = { ...env, NODE: process.execPath, CLI: cli, XDG_CONFIG_HOME: join(cwd, "config") };
  return spawnSync("sh", ["-c", `: | { ${words}; } 2>&1 | cat`], { cwd, env: all, encoding: "utf8" }).stdout;
}

const flags = "grep -h flags /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2";

/** A pipe that does not block fails a program that has to wait. Each time that `flags` runs, it prints three. */
function nonBlocking(output: string): readonly boolean[] {
  return [...output.matchAll(/^flags:\t(\d+)$/gm)].map(([, octal = ""]) => (Number.parseInt(octal, 8) & 0o4000) !== 0);
}

describe.runIf(isLinux)("the pipes of a command", () => {
  it.each([
    ["that is not recorded", off],
    ["that is recorded", {}],
  ])("%s block, in it and behind it", (_, more) => {
    const { cwd, env } = project();
    const output = between(`"$NODE" "$CLI" run -- ${flags}; ${flags}`, cwd, { ...env, ...more });
    expect(nonBlocking(output)).toEqual(Array(6).fill(false));
  });

  it("block behind one whose stderr passes through us and that died of a signal", () => {
    const { cwd, env } = project();
    const program = `
      import { PassThrough } from "node:stream";
      const { endAs, start } = await import(${JSON.stringify(new URL("./start-program.ts", import.meta.url).href)});
      const ran = await start(["sh", "-c", "kill -HUP $$"], process.env, new PassThrough());
      const exit = await ran.exited;
      ran.release();
      endAs(exit);`;
    writeFileSync(join(cwd, "program.mjs"), program);
    // Its stderr is a pipe that nothing else has.
    const output = between(`{ "$NODE" program.mjs; ${flags} >&2; } 2>&1 >/dev/null | cat`, cwd, env);
    expect(nonBlocking(output)).toEqual([false, false, false]);
  });
});

it.runIf(isLinux).each([
  ["that is not recorded", off],
  ["that is recorded", {}],
])("a command %s ignores no signals", async (_, more) => {
  const { cwd, env } = project();
  const ran = startCli(["run", "--", "grep", "SigIgn", "/proc/self/status"], { cwd, env: { ...env, ...more } });
  expect(await ran.ended).toBe(0);
  expect(ran.stdout()).toMatch(/^SigIgn:\t0+\n$/);
});

describe.each([
  ["that is not recorded", off],
  ["that is recorded", {}],
])("a command %s", (_, more) => {
  it.each([
    ["./missing", 127],
    ["missing", 127],
    ["./data", 126],
    ["./folder", 126],
    ["folder", 127],
    ["./no-interpreter", 127],
    ["./plain-script", 5],
    ["a=b", 5],
  ])("is run as by a shell: %s", async (program, code) => {
    const { cwd, env } = project();
    mkdirSync(join(cwd, "folder"));
    writeFileSync(join(cwd, "data"), "", { mode: 0o644 });
    writeFileSync(join(cwd, "no-interpreter"), "#!/no/such/interpreter\n", { mode: 0o755 });
    for (const name of ["plain-script", "a=b"]) writeFileSync(join(cwd, name), "exit 5\n", { mode: 0o755 });
    const own = { ...env, ...more, PATH: `${cwd}:${env.PATH}` };
    const ran = startCli(["run", "--", program], { cwd, env: own });
    expect(await ran.ended).toBe(code);
    expect(ran.stderr()).not.toContain("node");
    expect(spawnSync("sh", ["-c", '"$0"', program], { cwd, env: own }).status).toBe(code);
  });
});
