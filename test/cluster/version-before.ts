import { execFile } from "node:child_process";
import { mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { formatBefore } from "./format-before.ts";

const run = promisify(execFile);

const root = fileURLToPath(new URL("../..", import.meta.url));

export type VersionBefore = { readonly folder: string; readonly commit: string };

/**
 * The newest Tapedeck that stores data in another format, from its commit (or that of TAPEDECK_TEST_BEFORE), with the packages
 * that are installed here. Rejects outside a git clone with history.
 */
export async function versionBefore(folder: string): Promise<VersionBefore> {
  const named = process.env.TAPEDECK_TEST_BEFORE ?? (await formatBefore(root));
  const commit = (await run("git", ["rev-parse", "--short=10", named], { cwd: root })).stdout.trim();
  await mkdir(folder, { recursive: true });
  await run("sh", ["-c", 'git archive "$1" | tar -x -C "$2"', "sh", commit, folder], { cwd: root });
  await installIn(folder);
  const path = `${join(folder, "node_modules", ".bin")}:${process.env.PATH}`;
  await run("npm", ["run", "generate"], { cwd: join(folder, "proto"), env: { ...process.env, PATH: path } });
  return { folder, commit };
}

/** Third-party packages are those of this checkout. Our own are links to sibling folders, so they have to be copied. */
async function installIn(folder: string): Promise<void> {
  const [from, to] = [join(root, "node_modules"), join(folder, "node_modules")];
  const own = ["@tapedeck", "tapedeck"];
  await mkdir(to);
  for (const name of await readdir(from)) {
    if (!own.includes(name) && (name === ".bin" || !name.startsWith(".")))
      await symlink(join(from, name), join(to, name));
  }
  for (const name of own) await run("cp", ["-a", join(from, name), join(to, name)]);
}
