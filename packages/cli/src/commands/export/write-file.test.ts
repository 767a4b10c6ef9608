import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";

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
