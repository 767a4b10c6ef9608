import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { version } from "@tapedeck/shared/version";
import { root } from "../places.ts";

export type Built = AsyncDisposable & {
  readonly folder: string;
  /** What `npm pack` made of a package. */
  readonly archive: (name: string) => string;
};

const run = promisify(execFile);

/** What `npm run dist` makes, in a folder of its own: beside the npm packages this part, `npm` for nothing. */
export async function built(
  part: "x64" | "arm64" | "debian" | "npm",
  { withDocs = false }: { readonly withDocs?: boolean } = {},
): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), "tapedeck-dist-"));
  const main = join(import.meta.dirname, "..", "main.ts");
  if (withDocs) await run(process.execPath, [join(root, "infra", "bootstrap.mjs"), "docs:build"]);
  const options = withDocs ? [] : ["--without-docs"];
  await run(process.execPath, [main, "--to", folder, "--only", part, ...options]);
  return {
    folder,
    archive: (name) => join(folder, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
