import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { npmPackages } from "@tapedeck/infra/names";
import { type NpmPackage, repositoryOf } from "./npm-package.ts";
import { root } from "./places.ts";

/** The client for programs of others, as its own package builds it: it contains nothing of others. */
export async function buildClientPackage(folder: string): Promise<NpmPackage> {
  const repository = JSON.stringify(repositoryOf(process.env) ?? null);
  await promisify(execFile)(process.execPath, [join(root, "packages/client/build.ts"), folder, repository]);
  return { folder, name: npmPackages.client, dependencies: [], bundled: [] };
}
