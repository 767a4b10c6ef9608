import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const migrationsFolder = "services/query/src/db/migrations";
const formatFile = "packages/shared/src/log/epoch.ts";

/**
 * Returns the newest commit of a clone that stores data in another format than its working tree does: other migrations,
 * by name, or another format of the log. Commits that only reword these files do not count.
 * @throws Error if there is none, as outside of a clone with history
 */
export async function formatBefore(root: string): Promise<string> {
  const git = async (...args: string[]) => (await run("git", args, { cwd: root })).stdout.trim();
  const formatAt = async (commit: string) => {
    const files = await git("ls-tree", "-r", "--name-only", `${commit}:${migrationsFolder}`).catch(() => "");
    return formatOf(files.split("\n"), await git("show", `${commit}:${formatFile}`).catch(() => ""));
  };
  const files = await readdir(join(root, migrationsFolder), { recursive: true });
  const today = formatOf(files, await readFile(join(root, formatFile), "utf8"));
  // A commit that changes neither has the format of the one before it.
  const changes = await git("rev-list", "HEAD", "--", migrationsFolder, formatFile);
  for (const commit of ["HEAD", ...changes.split("\n").map((change) => `${change}^`)]) {
    const hash = await git("rev-parse", "--verify", "--quiet", commit).catch(() => undefined);
    if (hash !== undefined && (await formatAt(hash)) !== today) return hash;
  }
  throw new Error("no commit of this clone stores data in another format");
}

function formatOf(files: readonly string[], epochSource: string): string {
  const names = files.map((path) => basename(path));
  const migrations = names.filter((name) => /^\d{4}-.*(?<!\.test)\.ts$/.test(name)).toSorted();
  const [, log = "1"] = /\blogFormat = "(\w+)"/.exec(epochSource) ?? [];
  return JSON.stringify({ migrations, log });
}
