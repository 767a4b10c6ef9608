import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FetchNats } from "./nats-release.ts";
import { run } from "./run.ts";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const MIRROR = "http://deb.debian.org/debian";

/** Only root's apt drops its rights for the fetching, and would then not get into our folder; others have no name to give. */
const SANDBOX = process.getuid?.() === 0 ? { "APT::Sandbox::User": "root" } : {};

/**
 * Fetches Debian's package `nats-server` of suite sid (stable's is too old) and unpacks it into the folder.
 * apt does the fetching and checks the signatures, with state, cache and sources of its own: the system's apt stays as it is.
 */
export const fetchNatsFromDebian = async ({ folder, log }: FetchNats): Promise<string> => {
  if (process.platform !== "linux" || !existsSync("/usr/bin/apt-get")) throw new Error("no apt on this machine");
  if (!existsSync(KEYRING)) throw new Error(`apt here does not have ${KEYRING} (package debian-archive-keyring)`);
  const architecture = (await run("dpkg", ["--print-architecture"])).stdout.trim();
  log(`fetching nats-server from Debian sid (${MIRROR})`);

  await mkdir(join(folder, "state", "lists", "partial"), { recursive: true });
  await mkdir(join(folder, "cache", "archives", "partial"), { recursive: true });
  const sources = join(folder, "sources.list");
  await writeFile(sources, `deb [arch=${architecture} signed-by=${KEYRING}] ${MIRROR} sid main\n`);
  const options = {
    "Dir::State": join(folder, "state"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": join(folder, "cache"),
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "-",
    "Dir::Etc::preferences": "-",
    "Dir::Etc::preferencesparts": "-",
    ...SANDBOX,
    "APT::Update::Error-Mode": "any",
    "Acquire::Languages": "none",
    "Acquire::Retries": "2",
    "Acquire::http::Timeout": "20",
  };
  const flags = Object.entries(options).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  for (const args of [["update"], ["download", "nats-server"]]) {
    const { code, stderr } = await run("apt-get", [...flags, "-q", ...args], { cwd: folder });
    if (code !== 0) throw new Error(`apt-get ${args[0]} failed: ${stderr.trim().split("\n").at(-1)}`);
  }
  const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"));
  if (archive === undefined) throw new Error("apt-get downloaded nothing");
  const unpacked = join(folder, "unpacked");
  const { code, stderr } = await run("dpkg", ["-x", join(folder, archive), unpacked]);
  if (code !== 0) throw new Error(`dpkg -x failed: ${stderr.trim()}`);
  return join(unpacked, "usr", "sbin", "nats-server");
};
