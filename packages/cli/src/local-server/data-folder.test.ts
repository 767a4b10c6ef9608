import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { expect, it } from "vitest";
import { checkDataFolder } from "./data-folder.ts";

it("may be a checkout's folder in which only tests and the benchmark have left something", async () => {
  await using dir = await temporaryFolder();
  for (const name of ["bench", "bin", "screenshots"]) await mkdir(join(dir.folder, name));
  await expect(checkDataFolder(dir.folder)).resolves.toBeUndefined();
  await mkdir(join(dir.folder, "photos"));
  await expect(checkDataFolder(dir.folder)).rejects.toThrow("photos");
});

it("may be a disk of its own, and have files of desktops and editors", async () => {
  await using dir = await temporaryFolder();
  await mkdir(join(dir.folder, "lost+found"));
  for (const name of ["core", ".DS_Store", ".tapedeck.yaml.swp"]) await writeFile(join(dir.folder, name), "");
  await expect(checkDataFolder(dir.folder)).resolves.toBeUndefined();
});
