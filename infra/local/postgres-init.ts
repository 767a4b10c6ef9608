import { chmod, chown, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isForeignFile } from "./foreign-files.ts";
import { LocalServerError } from "./local-server-error.ts";
import { majorVersion, type PostgresBinaries } from "./postgres-binaries.ts";
import type { AsPostgres } from "./postgres-user.ts";
import { run } from "./run.ts";

type Initialise = {
  readonly dataDir: string;
  readonly password?: string;
  readonly fsync?: boolean;
  readonly binaries: PostgresBinaries;
  readonly as: AsPostgres;
};

/** Inside a folder that can't itself become the data directory. */
const inner = "cluster";

/**
 * Where Postgres' files are, or will be: the folder itself, or `cluster` in it. A mount point can't be replaced by the new
 * data directory, and one that has `lost+found` is not empty.
 */
export async function clusterFolder(folder: string): Promise<string> {
  const within = join(folder, inner);
  if (await isCluster(folder)) return folder;
  if (await isCluster(within)) return within;
  const names = await readdir(folder).catch((): string[] => []);
  const isReplaceable = names.length === 0 && !(await isMountPoint(folder));
  return isReplaceable || names.some((name) => !isOurs(name)) ? folder : within;
}

function isCluster(folder: string): Promise<boolean> {
  return stat(join(folder, "PG_VERSION")).then(Boolean, () => false);
}

/** An interrupted start leaves `cluster.new-…`. */
function isOurs(name: string): boolean {
  return isForeignFile(name) || name === inner || name.startsWith(`${inner}.new-`);
}

async function isMountPoint(folder: string): Promise<boolean> {
  try {
    const path = await realpath(folder);
    if ((await stat(path)).dev !== (await stat(dirname(path))).dev) return true;
    // Another folder of the same file system may be mounted there.
    const mounts = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
    const quoted = path.replace(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
    return mounts.split("\n").some((line) => line.split(" ")[4] === quoted);
  } catch {
    return false;
  }
}

/** Makes the data directory unless it is there already, and refuses one that this Postgres can't use. */
export async function initialise(options: Initialise): Promise<void> {
  const { dataDir, binaries } = options;
  const major = await majorVersion(binaries);
  const state = await inspect(dataDir);
  if (state.kind === "foreign") {
    throw new LocalServerError(
      `${dataDir} holds something else (${state.found}) and can't be the data directory of Postgres: choose an empty one.`,
    );
  }
  if (state.kind === "cluster") {
    if (state.version === major) return;
    throw new LocalServerError(
      `${dataDir} was created by Postgres ${state.version}, and this is Postgres ${major}: move it away and run tapedeck rebuild, which fills a new one from the log.`,
    );
  }
  await create(options);
}

type State =
  | { readonly kind: "empty" }
  | { readonly kind: "foreign"; readonly found: string }
  | { readonly kind: "cluster"; readonly version: string };

async function inspect(dataDir: string): Promise<State> {
  const names = await readdir(dataDir).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw new LocalServerError(`${dataDir} can't be the data directory of Postgres: ${error.message}.`);
  });
  if (names.includes("PG_VERSION")) {
    return { kind: "cluster", version: (await readFile(join(dataDir, "PG_VERSION"), "utf8")).trim() };
  }
  return names[0] === undefined ? { kind: "empty" } : { kind: "foreign", found: names[0] };
}

/** Creates it under another name and renames it, so that an interrupted start leaves nothing incomplete. */
async function create({ dataDir, password, fsync = true, binaries, as }: Initialise): Promise<void> {
  const half = await mkdtemp(`${dataDir}.new-`);
  const secrets = await mkdtemp(join(tmpdir(), "tapedeck-"));
  const passwordFile = join(secrets, "password");
  try {
    await writeFile(passwordFile, `${password ?? ""}\n`, { mode: 0o600 });
    if (as.owner) for (const path of [half, secrets, passwordFile]) await chown(path, as.owner.uid, as.owner.gid);
    await chmod(half, 0o700);
    const { command, args, user } = as.command(binaries.initdb, [
      `--pgdata=${half}`,
      "--username=postgres",
      "--encoding=UTF8",
      "--locale=C",
      ...(password === undefined ? ["--auth=trust"] : ["--auth=scram-sha-256", `--pwfile=${passwordFile}`]),
      ...(fsync ? [] : ["--no-sync"]),
    ]);
    const { code, stderr } = await run(command, args, { env: { ...process.env, LC_ALL: "C" }, ...user });
    if (code !== 0) throw new LocalServerError(`Postgres could not create ${dataDir}: ${stderr.trim()}.`);
    await rename(half, dataDir);
  } finally {
    await rm(half, { recursive: true, force: true });
    await rm(secrets, { recursive: true, force: true });
  }
}
