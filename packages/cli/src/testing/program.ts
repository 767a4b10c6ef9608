import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Puts a stand-in (`skaffold.ts`, `vagrant.ts`) into a folder as the program; gives the PATH with which it is found. */
export function installProgram(folder: string, name: "skaffold" | "vagrant"): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${join(import.meta.dirname, name)}.ts" "$@"\n`);
  chmodSync(path, 0o755);
  return `${folder}:${process.env.PATH}`;
}
