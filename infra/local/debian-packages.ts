import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./run.ts";

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
export const debianMirror = "http://deb.debian.org/debian";

/** Only root's apt drops its rights for the fetching, and would then not get into our folder; others have no name to give. */
const sandbox = process.getuid?.() === 0 ? { "APT::Sandbox::User": "root" } : {};

export type DownloadDebianPackages = {
  /** For the packages, and for apt's state, cache and sources: the system's apt stays as it is. */
  readonly folder: string;
  readonly suite: string;
  readonly names: readonly string[];
  /** Default: this machine's. */
  readonly architecture?: string;
};

/**
 * Downloads packages of Debian, without those that they need. apt does it, and checks the signatures.
 * @returns the .deb files
 */
export async function downloadDebianPackages({
  folder,
  suite,
  names,
  architecture,
}: DownloadDebianPackages): Promise<readonly string[]> {
  if (process.platform !== "linux" || !existsSync("/usr/bin/apt-get")) throw new Error("no apt on this machine");
  if (!existsSync(keyring)) throw new Error(`apt here does not have ${keyring} (package debian-archive-keyring)`);
  const target = architecture ?? (await run("dpkg", ["--print-architecture"])).stdout.trim();

  await mkdir(join(folder, "state", "lists", "partial"), { recursive: true });
  await mkdir(join(folder, "cache", "archives", "partial"), { recursive: true });
  const sources = join(folder, "sources.list");
  await writeFile(sources, `deb [arch=${target} signed-by=${keyring}] ${debianMirror} ${suite} main\n`);
  const options = {
    "APT::Architecture": target,
    "APT::Architectures": target,
    "Dir::State": join(folder, "state"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": join(folder, "cache"),
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "-",
    "Dir::Etc::preferences": "-",
    "Dir::Etc::preferencesparts": "-",
    ...sandbox,
    "APT::Update::Error-Mode": "any",
    "Acquire::Languages": "none",
    "Acquire::Retries": "2",
    "Acquire::http::Timeout": "20",
  };
  const flags = Object.entries(options).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  for (const args of [["update"], ["download", ...names]]) {
    const { code, stderr } = await run("apt-get", [...flags, "-q", ...args], { cwd: folder });
    if (code !== 0) throw new Error(`apt-get ${args[0]} failed: ${stderr.trim().split("\n").at(-1)}`);
  }
  const archives = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
  if (archives.length === 0) throw new Error("apt-get downloaded nothing");
  return archives.map((name) => join(folder, name));
}

/** Unpacks packages into a folder, without running anything of theirs. */
export async function unpackDebianPackages(archives: readonly string[], folder: string): Promise<void> {
  for (const archive of archives) {
    const { code, stderr } = await run("dpkg", ["-x", archive, folder]);
    if (code !== 0) throw new Error(`dpkg -x failed: ${stderr.trim()}`);
  }
}
