import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { version } from "@tapedeck/shared/version";

export type Built = AsyncDisposable & {
  readonly folder: string;
  /** What `npm pack` made of a package. */
  readonly archive: (name: string) => string;
};

/** What `npm run dist` makes, in a folder of its own: beside the npm packages this part, `npm` for nothing. */
export async function built(part: "x64" | "arm64" | "debian" | "npm"): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), "tapedeck-dist-"));
  const main = join(import.meta.dirname, "..", "main.ts");
  await promisify(execFile)(process.execPath, [main, "--to", folder, "--only", part]);
  return {
    folder,
    archive: (name) => join(folder, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
