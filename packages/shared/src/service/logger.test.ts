import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LogOutput } from "../output/log-output.ts";
import { temporaryFolder } from "../testing/temporary-folder.ts";

/** A program that logs twice and ends by itself, with 3. */
const program = (message = "one") => `
  const { createLogger } = await import(${JSON.stringify(new URL("./logger.ts", import.meta.url).href)});
  const log = createLogger("sample");
  log.info(${JSON.stringify(message)});
  await new Promise((resolve) => setTimeout(resolve, 50));
  log.fatal("two");
  process.exit(3);`;
const args = (message?: string) => ["--input-type=module", "-e", program(message)];

it.each(["json", "pretty"])(
  "a full disk, a closed pipe and a closed stderr do not end who logs (%s)",
  async (format) => {
    const env = { ...process.env, TAPEDECK_LOG_FORMAT: format };
    const full = openSync("/dev/full", "w");
    expect(spawnSync(process.execPath, args(), { stdio: ["ignore", "ignore", full], env }).status).toBe(3);
    closeSync(full);
    const piped = spawn(process.execPath, args(), { stdio: ["ignore", "ignore", "pipe"], env });
    piped.stderr.destroy();
    expect((await once(piped, "exit"))[0]).toBe(3);
    const words = [process.execPath, ...args()].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    expect(spawnSync("sh", ["-c", `${words} 2>&-`], { env }).status).toBe(3);
  },
);

it("says how many lines are missing, on a line of its own", async () => {
  await using temporary = await temporaryFolder();
  const path = join(temporary.folder, "log");
  // A limit of the file's size is met in the middle of a line.
  const script = `
    import { openSync } from "node:fs";
    import { spawnSync } from "node:child_process";
    const { LogOutput } = await import(${JSON.stringify(new URL("../output/log-output.ts", import.meta.url).href)});
    process.on("SIGXFSZ", () => {});
    const output = new LogOutput(openSync(${JSON.stringify(path)}, "a"), (lines) => lines + " missing\\n");
    for (let line = 1; line <= 3; line++) output.write("x".repeat(600) + "\\n");
    spawnSync("prlimit", ["--fsize=unlimited", "--pid", String(process.pid)]);
    output.write("again\\n");`;
  const child = spawnSync("prlimit", ["--fsize=1024:unlimited", process.execPath, "--input-type=module", "-e", script]);
  expect(child.stderr.toString()).toBe("");
  const lines = readFileSync(path, "utf8").split("\n");
  expect(lines.map((line) => line.replace(/x+/, ({ length }) => `${length} x`))).toEqual([
    "600 x",
    "423 x",
    "2 missing",
    "again",
    "",
  ]);
});

it("does not throw where its descriptor is closed", () => {
  expect(() => new LogOutput(9_999, () => "").write("x\n")).not.toThrow();
});

it.each(["json", "pretty"])("recorded text that a message quotes never reaches a terminal as it is (%s)", (format) => {
  const message = "a\u001b]52;c;aGk=\u0007b\u009b2J\u202ec";
  const env = { ...process.env, TAPEDECK_LOG_FORMAT: format };
  const { stderr } = spawnSync(process.execPath, args(message), { env });
  const text = stderr.toString();
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
  if (format === "json") expect(JSON.parse(text.split("\n")[0] ?? "").msg).toBe(message);
  else expect(text).toContain("sample: abc");
});
