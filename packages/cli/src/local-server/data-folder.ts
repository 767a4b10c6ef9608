import { access, constants, readdir, stat, statfs } from "node:fs/promises";
import { isForeignFile } from "@tapedeck/infra/local/foreign-files";
import { CommandError } from "../command-error.ts";
import { makeFolder } from "../make-folder.ts";
import { lockFile } from "./lock.ts";

/** What `up`, the servers, the bootstrap and the taps keep there; in a checkout the benchmark and the tests of the page, too. */
const ours: ReadonlySet<string> = new Set([
  "bench",
  "bin",
  "demo",
  "install.lock",
  "log",
  "nats",
  "postgres",
  "postgres.log",
  "replaced",
  "screenshots",
  "secrets",
  "spill",
]);

/** Once made it is always there. */
const sureSign = "secrets";

/** Whether an `up` has made the folder its own. */
export async function isDataFolder(folder: string): Promise<boolean> {
  return (await readdir(folder).catch((): string[] => [])).includes(sureSign);
}

/** What Tapedeck has made in a data folder. */
export async function namesInDataFolder(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => ours.has(name) || lockFile.test(name));
}

const leastFreeBytes = 256 * 1024 * 1024;

/**
 * Makes the data folder, or sees that it can be one.
 * @throws CommandError for a file, a folder of something else, one that can't be written to, a full disk
 */
export async function checkDataFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (found !== undefined && !found.isDirectory()) {
    throw new CommandError(`${folder} is a file and can't be the data folder: choose another with --data.`);
  }
  if (found !== undefined) {
    const names = await readdir(folder).catch((): string[] => []);
    const strange = names.find((name) => !ours.has(name) && !lockFile.test(name) && !isForeignFile(name));
    if (strange !== undefined && !names.includes(sureSign)) {
      throw new CommandError(
        `${folder} holds something else (${strange}) and can't be the data folder: choose an empty one with --data.`,
      );
    }
  }
  await makeFolder(folder).catch((error: Error) => {
    throw new CommandError(`${folder} can't be the data folder (${error.message}): choose another with --data.`);
  });
  await access(folder, constants.W_OK).catch(() => {
    throw new CommandError(
      `${folder} can't be written to by this user: start as its owner, or choose another with --data.`,
    );
  });
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < leastFreeBytes) {
    const free = Math.floor((bavail * bsize) / 1024 / 1024);
    throw new CommandError(
      `only ${free} MiB are free on the disk of ${folder}: free some space (256 MiB at least), or choose another with --data.`,
    );
  }
}
