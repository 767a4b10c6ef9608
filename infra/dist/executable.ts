import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { extract } from "tar";
import { root } from "./places.ts";

const run = promisify(execFile);

/** Node looks for this text in itself (Node's documentation of single executable applications). */
const sentinelFuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

export type Architecture = "x64" | "arm64";

export type Executable = {
  /** A script with all that it needs. */
  readonly script: string;
  readonly architecture: Architecture;
  /** For what is made on the way. */
  readonly folder: string;
  readonly file: string;
};

/** Makes a program of Node and a script: one file that needs nothing else. */
export async function buildExecutable({ script, architecture, folder, file }: Executable): Promise<void> {
  await mkdir(folder, { recursive: true });
  const blob = join(folder, "program.blob");
  const config = join(folder, "sea-config.json");
  // Code that this machine has compiled is of no use to another architecture.
  const useCodeCache = architecture === process.arch;
  const settings = { main: script, output: blob, disableExperimentalSEAWarning: true, useCodeCache };
  await writeFile(config, JSON.stringify(settings));
  await run(process.execPath, ["--experimental-sea-config", config]);
  await copyFile(await nodeBinary(architecture, folder), file);
  await chmod(file, 0o755);
  const postject = join(root, "node_modules/postject/dist/cli.js");
  await run(process.execPath, [postject, file, "NODE_SEA_BLOB", blob, "--sentinel-fuse", sentinelFuse]);
}

/** The Node that runs this, or the same version for another architecture, from npm, which checks what it downloads. */
async function nodeBinary(architecture: Architecture, folder: string): Promise<string> {
  if (architecture === process.arch) return process.execPath;
  const name = `node-linux-${architecture}`;
  const args = ["pack", `${name}@${process.versions.node}`, "--pack-destination", folder, "--silent"];
  const { stdout } = await run("npm", args, { cwd: root });
  await extract({ file: join(folder, stdout.trim()), cwd: folder, filter: (path) => path.endsWith("/bin/node") });
  return join(folder, "package", "bin", "node");
}
