import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { temporaryFolder } from "./testing/temporary-folder.ts";

/** A checkout with all packages installed, whose programs only note that they ran. */
async function checkout() {
  const folder = await temporaryFolder();
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  };
  const lock = '{ "packages": {} }';
  for (const path of ["", "infra/docs-site"]) {
    await write(join(path, "package-lock.json"), lock);
    await write(join(path, "node_modules/.installed-from"), createHash("sha256").update(lock).digest("hex"));
  }
  await mkdir(join(folder, "node_modules/.bin"));
  await symlink(process.execPath, join(folder, "node_modules/.bin/node"));
  await write("node_modules/.bin/turbo", "#!/bin/sh\n");
  await chmod(join(folder, "node_modules/.bin/turbo"), 0o755);
  await write("infra/local/fetch-nats-server.ts", "");
  const noted = join(folder, "noted");
  const notes = (line: string) =>
    `import { appendFileSync, existsSync } from "node:fs";\nappendFileSync(${JSON.stringify(noted)}, "${line}\\n");\n`;
  for (const name of ["main", "release"]) await write(`infra/dist/${name}.ts`, notes(name));
  await cp(join(import.meta.dirname, "bootstrap.mjs"), join(folder, "infra/bootstrap.mjs"));
  const start = (command: string) => {
    const child = spawn(process.execPath, [join(folder, "infra/bootstrap.mjs"), command]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    return { output: () => output, ended: new Promise((resolve) => child.once("close", resolve)) };
  };
  return { folder, write, notes, start, noted: async () => (await readFile(noted, "utf8")).trim().split("\n") };
}

it.each([
  ["dist", "main"],
  ["release", "release"],
])("npm run %s builds the manual before it packs", async (command, program) => {
  const { write, notes, start, noted } = await checkout();
  await write("infra/docs-site/build.mjs", notes("manual"));
  const { output, ended } = start(command);
  expect([await ended, output()]).toEqual([0, expect.stringContaining("building the manual … ok")]);
  expect(await noted()).toEqual(["manual", program]);
});

it("two commands build the manual one after the other", async () => {
  const { write, notes, start, noted } = await checkout();
  const wait = `while (existsSync("noted") && !existsSync("go")) await new Promise((done) => setTimeout(done, 20));\n`;
  await write("infra/docs-site/build.mjs", `${notes("begin")}${wait}appendFileSync("noted", "end\\n");\n`);
  const first = start("docs:build");
  await until(async () => (await noted().catch(() => [])).length === 1, { message: "the first build" });
  const second = start("docs:build");
  await until(() => second.output().includes("waiting for it"), { message: "the second to wait" });
  await write("go", "");
  expect(await Promise.all([first.ended, second.ended])).toEqual([0, 0]);
  expect(await noted()).toEqual(["begin", "end", "begin", "end"]);
});

it.each([
  ["start --no-demo", "up --no-demo"],
  ["start -- --no-demo", "up --no-demo"],
  ["start", "up"],
])("npm %s is tapedeck %s", async (words, command) => {
  const { folder, write, noted } = await checkout();
  await write("package.json", JSON.stringify({ scripts: { start: "node infra/bootstrap.mjs start" } }));
  const main = `import { appendFileSync } from "node:fs";\nappendFileSync("noted", process.argv.slice(2).join(" "));\n`;
  await write("packages/cli/src/main.ts", main);
  const npm = spawn("npm", words.split(" "), { cwd: folder, stdio: "ignore" });
  await new Promise((resolve) => npm.once("close", resolve));
  expect(await noted()).toEqual([command]);
});
