import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** The paths of all files that are committed or would be, from the root. */
export const paths: readonly string[] = execFileSync(
  "git",
  ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
  { cwd: root },
)
  .toString()
  .split("\0")
  .filter((path) => path !== "" && existsSync(join(root, path)));

/** Reads a file by its path from the root. */
export function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
