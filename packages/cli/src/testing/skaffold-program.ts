import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const standIn = fileURLToPath(new URL("skaffold.ts", import.meta.url));
const fixtures = fileURLToPath(new URL("../../../../test/fixtures/skaffold/", import.meta.url));

/** Puts a program `skaffold` into a folder; gives the PATH with which it is found. */
export function installSkaffold(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "skaffold");
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${standIn}" "$@"\n`);
  chmodSync(path, 0o755);
  return `${folder}:${process.env.PATH}`;
}

/** Folder of a recording in test/fixtures/skaffold. */
export function recordingFolder(name: string): string {
  return join(fixtures, name);
}
