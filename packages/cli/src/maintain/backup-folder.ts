import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isForeignFile } from "@tapedeck/infra/local/foreign-files";
import type { Snapshot } from "@tapedeck/shared/log/backup";
import { type TokenBackup, tokenBackup } from "@tapedeck/shared/tokens/store";
import { CommandError } from "../command-error.ts";

// The files are those of `nats stream backup`, so each program reads backups of the other.
const piecesFile = "stream.tar.s2";
const snapshotFile = "backup.json";
const halfFile = `${snapshotFile}.half`;
/** Contains hashes, which grant no access. */
const tokensFile = "tokens.json";

export type BackupWriter = {
  readonly take: (piece: Uint8Array) => Promise<void>;
  /** Completes the backup. */
  readonly finish: (snapshot: Snapshot, tokens?: TokenBackup) => Promise<void>;
};

/**
 * Makes a backup's folder. If it is disposed of before it is finished, it removes what it made.
 * @throws CommandError where something is there already
 */
export async function newBackup(folder: string): Promise<BackupWriter & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const topmost = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (topmost !== undefined) stack.defer(() => removeEmptyFolders(resolve(folder), resolve(topmost)));
  const [first] = (await readdir(folder)).filter((name) => !isForeignFile(name));
  if (first !== undefined) throw new CommandError(`${folder} is not empty (${first}): name a new folder.`);
  const file = await open(join(folder, piecesFile), "wx", 0o600);
  stack.defer(() => removeFiles(folder));
  const made = stack.move();
  let isWhole = false;
  return {
    take: (piece) => file.appendFile(piece), // repeats where the disk takes less than was given
    async finish(snapshot, tokens) {
      await file.sync();
      if (tokens !== undefined)
        await writeFile(join(folder, tokensFile), `${JSON.stringify(tokens)}\n`, { mode: 0o600, flush: true });
      await writeFile(join(folder, halfFile), `${JSON.stringify(snapshot)}\n`, { mode: 0o600, flush: true });
      await rename(join(folder, halfFile), join(folder, snapshotFile));
      isWhole = true;
    },
    async [Symbol.asyncDispose]() {
      await file.close();
      if (!isWhole) await made.disposeAsync();
    },
  };
}

async function removeFiles(folder: string): Promise<void> {
  for (const name of [piecesFile, tokensFile, halfFile]) await rm(join(folder, name), { force: true });
}

/** Removes a folder and its parents, up to the topmost, as long as they are empty. */
async function removeEmptyFolders(folder: string, topmost: string): Promise<void> {
  try {
    for (let one = folder; ; one = dirname(one)) {
      await rmdir(one);
      if (one === topmost) return;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}

export type ReadBackup = {
  readonly snapshot: Snapshot;
  readonly pieces: () => AsyncIterable<Uint8Array>;
  /** Undefined in a backup of `nats stream backup`. */
  readonly tokens: TokenBackup | undefined;
};

/** @throws CommandError for a folder that is no backup, or an incomplete one */
export async function readBackup(folder: string): Promise<ReadBackup> {
  const pieces = join(folder, piecesFile);
  const isThere = (path: string) => stat(path).then(Boolean, () => false);
  if (!(await isThere(pieces))) throw new CommandError(`${folder} is not a backup of a log: it has no ${piecesFile}.`);
  const text = await readFile(join(folder, snapshotFile), "utf8").catch(() => undefined);
  if (text === undefined) throw new CommandError(`the backup in ${folder} is incomplete: it has no ${snapshotFile}.`);
  const tokens = await tokensIn(join(folder, tokensFile));
  return {
    tokens,
    snapshot: snapshotIn(text, folder),
    pieces: () => createReadStream(pieces, { highWaterMark: 128 * 1024 }),
  };
}

async function tokensIn(file: string): Promise<TokenBackup | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return tokenBackup.parse(JSON.parse(text));
  } catch (cause) {
    throw new CommandError(`${file} is not a valid backup of tokens.`, { cause });
  }
}

function snapshotIn(text: string, folder: string): Snapshot {
  try {
    const { config, state } = JSON.parse(text) as Snapshot;
    if (typeof config.name === "string" && Number.isInteger(state.last_seq)) return { config, state };
  } catch {
    // reported below
  }
  throw new CommandError(`${join(folder, snapshotFile)} is not a valid description of a snapshot.`);
}
