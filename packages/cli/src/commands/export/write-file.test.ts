import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { writeFile } from "./run.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

/** Writes its input to the file that it is started with. */
const program = `
  const { writeFile } = await import(${JSON.stringify(new URL("./run.ts", import.meta.url).href)});
  await writeFile(process.argv[1], process.stdin).catch(({ message }) => {
    console.error(message);
    process.exitCode = 1;
  });`;

function writer(file: string): ChildProcess {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, file], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  cleanup.defer(() => void child.kill("SIGKILL"));
  return child;
}

const begun = (folder: string, parts: number) =>
  until(() => readdirSync(folder).filter((name) => name.endsWith(".part")).length === parts, {
    message: `${parts} files to be written`,
  });

it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("an export that is ended by %s leaves no file", async (signal) => {
  const { folder } = cleanup.use(await temporaryFolder());
  const child = writer(join(folder, "file"));
  child.stdin?.write("a");
  await begun(folder, 1);
  child.kill(signal);
  expect((await once(child, "exit"))[0]).toBe(1);
  expect(readdirSync(folder)).toEqual([]);
});

it("two exports into one file at a time do not disturb each other", async () => {
  const { folder } = cleanup.use(await temporaryFolder());
  const file = join(folder, "file");
  const first = writer(file);
  first.stdin?.write("first");
  await begun(folder, 1);
  const second = writer(file);
  second.stdin?.write("second");
  await begun(folder, 2);
  for (const [child, content] of [
    [second, "second"],
    [first, "first"],
  ] as const) {
    child.stdin?.end();
    expect((await once(child, "exit"))[0]).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(content);
  }
  expect(readdirSync(folder)).toEqual(["file"]);
});

it("the file that a link leads to is replaced, and who may read it stays", async () => {
  const { folder } = cleanup.use(await temporaryFolder());
  mkdirSync(join(folder, "own"));
  const [own, link] = [join(folder, "own", "file"), join(folder, "link")];
  writeFileSync(own, "earlier", { mode: 0o600 });
  symlinkSync(own, link);
  await writeFile(link, Readable.from(["new"]));
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect([readFileSync(own, "utf8"), statSync(own).mode & 0o777]).toEqual(["new", 0o600]);
  expect(readdirSync(join(folder, "own"))).toEqual(["file"]);
});

it("a link to a file that is not there yet makes it, and a link to nowhere is refused", async () => {
  const { folder } = cleanup.use(await temporaryFolder());
  mkdirSync(join(folder, "own"));
  const [link, lost, loop] = ["link", "lost", "loop"].map((name) => join(folder, name)) as [string, string, string];
  symlinkSync("own/file", link);
  expect(await writeFile(link, Readable.from(["new"]))).toBe("file");
  expect(readFileSync(join(folder, "own", "file"), "utf8")).toBe("new");
  symlinkSync("none/file", lost);
  await expect(writeFile(lost, Readable.from(["new"]))).rejects.toThrow(`there is no folder ${join(folder, "none")}`);
  symlinkSync("loop", loop);
  await expect(writeFile(loop, Readable.from(["new"]))).rejects.toThrow(`${loop} is a link that leads to itself.`);
  for (const one of [link, lost, loop]) expect(lstatSync(one).isSymbolicLink()).toBe(true);
});

it("a pipe whose reader leaves is no error", async () => {
  const { folder } = cleanup.use(await temporaryFolder());
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const reader = spawn("head", ["-c1", pipe], { stdio: "ignore" });
  cleanup.defer(() => void reader.kill("SIGKILL"));
  const much = Array.from({ length: 100 }, () => Buffer.alloc(64 * 1_024));
  expect(await writeFile(pipe, Readable.from(much))).toBe("reader left");
});

it("a pipe is written as it is, and stays one", async () => {
  const { folder } = cleanup.use(await temporaryFolder());
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const done = await Promise.all([readFile(pipe, "utf8"), writeFile(pipe, Readable.from(["new"]))]);
  expect(done).toEqual(["new", "stream"]);
  expect(lstatSync(pipe).isFIFO()).toBe(true);
  expect(readdirSync(folder)).toEqual(["pipe"]);
});

it("a folder in the place of a file is refused before anything is read", async () => {
  const { folder } = cleanup.use(await temporaryFolder());
  const from = Readable.from(["new"]);
  await expect(writeFile(folder, from)).rejects.toThrow(`${folder} is a folder: give the name of a file in it.`);
  await expect(writeFile(`${folder}/`, from)).rejects.toThrow("is a folder");
  await expect(writeFile(join(folder, "none", "file"), Readable.from(["new"]))).rejects.toThrow(
    `there is no folder ${join(folder, "none")} to write to.`,
  );
  expect([from.readableDidRead, readdirSync(folder)]).toEqual([false, []]);
});
