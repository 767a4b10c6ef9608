import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, inject, it } from "vitest";
import { formatBefore } from "./format-before.ts";

/** A clone of its own with the files that say what is stored. */
async function clone() {
  const root = await mkdtemp(join(inject("serversFolder"), "clone-"));
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], { cwd: root })
      .toString()
      .trim();
  git("init", "--quiet");
  const migration = (name: string) => join(root, "services/query/src/db/migrations", name);
  const epoch = join(root, "packages/shared/src/log/epoch.ts");
  const write = async (file: string, text: string) => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  };
  const commit = () => {
    git("add", "--all");
    git("commit", "--quiet", "--allow-empty", "--message", "a change");
    return git("rev-parse", "HEAD");
  };
  await write(migration("0001-tables.ts"), "create");
  await write(epoch, 'export const logFormat = "1";\n');
  return { root, migration, epoch, write, commit };
}

it("the version before has other migrations: comments, tests and the index do not count", async () => {
  const { root, migration, epoch, write, commit } = await clone();
  commit();
  const before = commit();
  await write(migration("0002-more.ts"), "create");
  commit();
  await write(migration("0001-tables.ts"), "// Creates.\ncreate");
  await write(migration("0002-more.test.ts"), "a test");
  await write(migration("index.ts"), "the list");
  // A folder of older ones.
  await mkdir(migration("to-0001"));
  await rename(migration("0001-tables.ts"), migration("to-0001/0001-tables.ts"));
  await write(epoch, '// The format.\nexport const logFormat = "1";\n');
  commit();
  expect(await formatBefore(root)).toBe(before);
});

it("the version before has another format of the log, or another name of a migration", async () => {
  const { root, migration, epoch, write, commit } = await clone();
  const first = commit();
  await write(epoch, 'export const logFormat = "2";\n');
  const second = commit();
  expect(await formatBefore(root)).toBe(first);
  await rename(migration("0001-tables.ts"), migration("0001-other.ts"));
  // A change that is not committed yet counts, too.
  expect(await formatBefore(root)).toBe(second);
  commit();
  expect(await formatBefore(root)).toBe(second);
});

it("a clone that has always stored the same has no version before", async () => {
  const { root, migration, write, commit } = await clone();
  commit();
  await write(migration("0002-more.ts"), "create");
  await rm(migration("0002-more.ts"));
  await expect(formatBefore(root)).rejects.toThrow("no commit of this clone");
});
