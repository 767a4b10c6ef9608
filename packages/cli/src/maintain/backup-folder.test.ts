import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { readBackup } from "./backup-folder.ts";

/** A backup of two workspaces, as far as its files are looked at. */
async function backup(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tapedeck-backup-folder-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const workspace of ["acme", "globex"]) {
    mkdirSync(join(folder, workspace));
    const description = { config: { name: `TAPEDECK_LOG_${workspace}` }, state: { last_seq: 3 } };
    writeFileSync(join(folder, workspace, "backup.json"), JSON.stringify(description));
    writeFileSync(join(folder, workspace, "stream.tar.s2"), "pieces");
  }
  writeFileSync(join(folder, "tokens.json"), "{}");
  return folder;
}

it("a backup that lacks a file is refused as a whole, and the error names the file", async () => {
  expect((await readBackup(await backup())).logs.map(({ workspace }) => workspace).toSorted()).toEqual([
    "acme",
    "globex",
  ]);
  for (const file of ["acme/stream.tar.s2", "globex/backup.json", "tokens.json"]) {
    const folder = await backup();
    rmSync(join(folder, file));
    const [name = ""] = file.split("/").slice(-1);
    await expect(readBackup(folder)).rejects.toThrow(`is incomplete: it has no ${name}.`);
  }
});

it("a folder that is not there is not called a backup of something else", async () => {
  const folder = join(await backup(), "absent");
  await expect(readBackup(folder)).rejects.toThrow(`there is no folder ${folder}.`);
});
