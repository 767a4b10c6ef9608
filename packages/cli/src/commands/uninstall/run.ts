import { existsSync } from "node:fs";
import { readdir, rm, rmdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { cacheFolder, installation } from "@tapedeck/shared/installation";
import { CommandError } from "../../command-error.ts";
import { confirm } from "../../confirm.ts";
import { bytesText } from "../../display/durations.ts";
import { print } from "../../display/output.ts";
import { table } from "../../display/table.ts";
import { isDataFolder, namesInDataFolder } from "../../local-server/data-folder.ts";
import { runningUp } from "../../local-server/lock.ts";
import { countWaiting } from "../../local-server/waiting-spills.ts";
import { spillHome } from "../../recording/spill-home.ts";
import { contextsPath } from "../../targets/contexts.ts";

export type UninstallOptions = { readonly data: string; readonly yes?: boolean };

/** A folder, and the entries in it that Tapedeck made. */
type Kept = {
  readonly folder: string;
  readonly names: readonly string[];
  readonly what: string;
  readonly bytes: number;
};

/** What a package keeps in the cache. */
const cacheNames = ["bin", "compiled"];

/** Removes what Tapedeck made on this machine, once the user has seen what that is. */
export async function uninstall({ data, yes }: UninstallOptions): Promise<void> {
  const { env } = process;
  const folder = resolve(data);
  const running = await runningUp(folder);
  if (running !== undefined)
    throw new CommandError(`Tapedeck runs on ${folder} (process ${running.pid}): stop it first (kill ${running.pid}).`);
  const kept = (await Promise.all([keptData(folder), keptCache(cacheFolder(env))])).flat();
  if (kept.length === 0) print(`Nothing to remove: there is neither a data folder ${folder} nor a cache.`);
  else {
    print("This is removed for good:\n");
    const rows = kept.map((one) => [`  ${one.folder}`, bytesText(one.bytes), one.what]);
    print(table([{ title: "  FOLDER", isName: true }, { title: "SIZE", align: "right" }, { title: "WHAT" }], rows));
    if (!yes) await confirm("\nRemove it? [y/N] ", "removed");
    for (const one of kept) await remove(one);
    print(`Removed ${bytesText(kept.reduce((sum, { bytes }) => sum + bytes, 0))}.`);
  }
  for (const line of await staying(env)) print(line);
}

async function keptData(folder: string): Promise<readonly Kept[]> {
  if (!(await isDataFolder(folder))) return [];
  return keptIn(folder, await namesInDataFolder(folder), "all that was recorded here");
}

async function keptCache(folder: string): Promise<readonly Kept[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const own = names.filter((name) => cacheNames.includes(name));
  return keptIn(folder, own, "programs that can be fetched again");
}

async function keptIn(folder: string, names: readonly string[], what: string): Promise<readonly Kept[]> {
  if (names.length === 0) return [];
  const sizes = await Promise.all(names.map((name) => sizeOf(join(folder, name))));
  return [{ folder, names, what, bytes: sizes.reduce((sum, size) => sum + size, 0) }];
}

/** The size of a file, or of all files in a folder. A file may go meanwhile. */
async function sizeOf(path: string): Promise<number> {
  const is = await stat(path).catch(() => undefined);
  if (is === undefined) return 0;
  if (!is.isDirectory()) return is.size;
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(({ parentPath, name }) =>
      stat(join(parentPath, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The folder goes, too, unless something else is in it. */
async function remove({ folder, names }: Kept): Promise<void> {
  for (const name of names) await rm(join(folder, name), { recursive: true, force: true });
  await rmdir(folder).catch(() => {});
}

/** What is not removed, and what removes it. */
async function staying(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const waiting = await countWaiting(spillHome(env));
  const runs = waiting === 1 ? "1 recording waits" : `${waiting} recordings wait`;
  return [
    ...(waiting > 0
      ? [`${runs} in ${spillHome(env)}: \`tapedeck record --waiting\` delivers, or remove that folder.`]
      : []),
    ...(existsSync(contextsPath(env)) ? ["Logins are kept: `tapedeck logout --all` removes them."] : []),
    programText[installation],
  ];
}

const programText: Readonly<Record<typeof installation, string>> = {
  checkout: "The program is this checkout: remove its folder.",
  package:
    "The program is a package: `npm uninstall --global @tapedeck-dev/cli @tapedeck-dev/server`, or `apt purge tapedeck`.",
  executable: `The program is ${process.execPath}: remove that file.`,
};
