import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../dist/places.ts";

const files = ["package.json", "package-lock.json"];

/**
 * Packages that a test alone needs: what the lock file in `from` names, fetched once, by npm, which compares them with its
 * checksums. @returns their node_modules
 */
export async function fetchedPackages(name: string, from: string): Promise<string> {
  const lock = await readFile(join(from, "package-lock.json"));
  const kept = join(root, ".tapedeck", `${name}-${createHash("sha256").update(lock).digest("hex").slice(0, 12)}`);
  if (existsSync(kept)) return join(kept, "node_modules");
  await mkdir(join(root, ".tapedeck"), { recursive: true });
  // Two runs that fetch at once both end with all of it.
  const half = await mkdtemp(join(root, ".tapedeck", ".fetch-"));
  try {
    for (const file of files) await copyFile(join(from, file), join(half, file));
    await promisify(execFile)("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: half });
    await rename(half, kept).catch((error: Error) => {
      if (!existsSync(kept)) throw error;
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
  return join(kept, "node_modules");
}
