import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { ChangedFilesReader } from "./changed-files.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-files-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function repository() {
  const folder = mkdtempSync(join(root, "shop-"));
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder, encoding: "utf8" });
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const commit = () => {
    git("add", "-A");
    git("commit", "-qm", "One");
  };
  git("init", "-q", "-b", "main");
  for (const path of ["api/app.ts", "web/app.ts", "web/old.ts"]) write(path, "1");
  commit();
  return { folder, git, write, commit };
}

const named = (...files: readonly (readonly [path: string, change: string])[]) => ({
  files: files.map(([path, change]) => ({ path, change })),
  more: 0,
});

it("names what is not committed at first, then what changed since the call before", async () => {
  const { folder, git, write, commit } = repository();
  // A folder in the repository: paths begin at its root.
  const reader = new ChangedFilesReader(join(folder, "web"));
  write("api/app.ts", "22");
  write("web/new folder/ü.ts", "1");
  rmSync(join(folder, "web/old.ts"));
  expect(await reader.read()).toEqual(
    named(["api/app.ts", "modified"], ["web/old.ts", "deleted"], ["web/new folder/ü.ts", "added"]),
  );
  expect(await reader.read()).toEqual(named());
  // Edited again, although git reports the same of it; another is only committed.
  write("web/new folder/ü.ts", "22");
  expect(await reader.read()).toEqual(named(["web/new folder/ü.ts", "modified"]));
  commit();
  expect(await reader.read()).toEqual(named());
  git("checkout", "-q", "HEAD~1");
  expect(await reader.read()).toEqual(
    named(["api/app.ts", "modified"], ["web/new folder/ü.ts", "deleted"], ["web/old.ts", "added"]),
  );
  write("web/app.ts", "22");
  await reader.read();
  git("checkout", "-q", "web/app.ts");
  expect(await reader.read()).toEqual(named(["web/app.ts", "modified"]));
});

it("sees an edit that leaves the size as it was", async () => {
  const { folder, write } = repository();
  const reader = new ChangedFilesReader(folder);
  write("web/app.ts", "2");
  await reader.read();
  write("web/app.ts", "3");
  utimesSync(join(folder, "web/app.ts"), 1, 2);
  expect(await reader.read()).toEqual(named(["web/app.ts", "modified"]));
});

it("names a bounded number of files, and counts the others", async () => {
  const { folder, write } = repository();
  for (let number = 0; number < 60; number++) write(`many/${number}`, "1");
  const { files = [], more } = (await new ChangedFilesReader(folder).read()) ?? {};
  expect([files.length, more]).toEqual([50, 10]);
  const long = repository();
  for (let number = 0; number < 40; number++) long.write(`${"long-".repeat(48)}${number}`, "1");
  const found = await new ChangedFilesReader(long.folder).read();
  expect(found?.files.length).toBe(33);
  expect(found?.more).toBe(7);
});

it("works while another git holds the index' lock, and leaves the index as it was", async () => {
  const { folder, write } = repository();
  write("api/app.ts", "22");
  writeFileSync(join(folder, ".git/index.lock"), "");
  expect(await new ChangedFilesReader(folder).read()).toEqual(named(["api/app.ts", "modified"]));
  expect(existsSync(join(folder, ".git/index.lock"))).toBe(true);
});

it("knows nothing outside of a repository, and names the files of one without a commit", async () => {
  const folder = mkdtempSync(join(root, "plain-"));
  expect(await new ChangedFilesReader(folder).read()).toBeUndefined();
  execFileSync("git", ["init", "-q"], { cwd: folder });
  writeFileSync(join(folder, "a"), "1");
  expect(await new ChangedFilesReader(folder).read()).toEqual(named(["a", "added"]));
});
