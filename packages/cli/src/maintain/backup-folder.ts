import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isForeignFile } from "@tapedeck/infra/local/foreign-files";
import type { Snapshot } from "@tapedeck/shared/log/backup";
import { workspaceOfStream } from "@tapedeck/shared/log/subjects";
import { type SinkBackup, sinkBackup } from "@tapedeck/shared/sinks/sink-store";
import { asciiName } from "@tapedeck/shared/source";
import { type TokenBackup, tokenBackup } from "@tapedeck/shared/tokens/store";
import type { z } from "zod";
import { CommandError } from "../command-error.ts";
import { makeFolder } from "../make-folder.ts";

// A backup has a folder for each workspace, with the files of `nats stream backup`, so each program reads backups of the
// other. It is whole when it has `tokens.json`, which is written last.
const piecesFile = "stream.tar.s2";
const snapshotFile = "backup.json";
/** Contains hashes, which grant no access. */
const tokensFile = "tokens.json";
const halfFile = `${tokensFile}.half`;
/** Only where there are sinks. Contains the secrets that sign their requests, and their headers. */
const sinksFile = "sinks.json";

/** What a backup has beside the logs. */
export type BesideLogs = { readonly tokens: TokenBackup; readonly sinks: SinkBackup };

export type BackupWriter = {
  /** The log of this workspace is next. */
  readonly begin: (workspace: string) => Promise<void>;
  readonly take: (piece: Uint8Array) => Promise<void>;
  /** That was all of it. */
  readonly end: (snapshot: Snapshot) => Promise<void>;
  /** Completes the backup. */
  readonly finish: (beside: BesideLogs) => Promise<void>;
};

/**
 * Makes a backup's folder. If it is disposed of before it is finished, it removes what it made.
 * @throws CommandError where something is there already
 */
export async function newBackup(folder: string): Promise<BackupWriter & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const topmost = await makeFolder(folder, 0o700);
  if (topmost !== undefined) stack.defer(() => removeEmptyFolders(resolve(folder), resolve(topmost)));
  const [first] = (await readdir(folder)).filter((name) => !isForeignFile(name));
  if (first !== undefined) throw new CommandError(`${folder} is not empty (${first}): name a new folder.`);
  return new FolderWriter(folder, stack.move());
}

class FolderWriter implements BackupWriter, AsyncDisposable {
  readonly #folder: string;
  readonly #made: AsyncDisposableStack;
  #log: { readonly folder: string; readonly file: FileHandle } | undefined;
  #isWhole = false;

  constructor(folder: string, made: AsyncDisposableStack) {
    this.#folder = folder;
    this.#made = made;
    made.defer(() => rm(join(folder, halfFile), { force: true }));
  }

  readonly begin = async (workspace: string): Promise<void> => {
    const folder = join(this.#folder, asciiName(workspace));
    await mkdir(folder, { mode: 0o700 });
    this.#made.defer(() => rm(folder, { recursive: true, force: true }));
    this.#log = { folder, file: await open(join(folder, piecesFile), "wx", 0o600) };
  };

  // Repeats where the disk takes less than was given.
  readonly take = async (piece: Uint8Array): Promise<void> => this.#log?.file.appendFile(piece);

  readonly end = async (snapshot: Snapshot): Promise<void> => {
    const { folder, file } = this.#log ?? {};
    if (folder === undefined) throw new Error("no log was begun");
    await file?.sync();
    await this.#close();
    await writeFile(join(folder, snapshotFile), `${JSON.stringify(snapshot)}\n`, { mode: 0o600, flush: true });
  };

  readonly finish = async ({ tokens, sinks }: BesideLogs): Promise<void> => {
    if (Object.keys(sinks).length > 0) {
      const file = join(this.#folder, sinksFile);
      this.#made.defer(() => rm(file, { force: true }));
      await writeFile(file, `${JSON.stringify(sinks)}\n`, { mode: 0o600, flush: true });
    }
    const half = join(this.#folder, halfFile);
    await writeFile(half, `${JSON.stringify(tokens)}\n`, { mode: 0o600, flush: true });
    await rename(half, join(this.#folder, tokensFile));
    this.#isWhole = true;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
    if (!this.#isWhole) await this.#made.disposeAsync();
  }

  async #close(): Promise<void> {
    const log = this.#log;
    this.#log = undefined;
    await log?.file.close();
  }
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

export type LogBackup = {
  readonly workspace: string;
  readonly snapshot: Snapshot;
  readonly pieces: () => AsyncIterable<Uint8Array>;
};

export type ReadBackup = {
  readonly logs: readonly LogBackup[];
  /** Undefined in a backup of `nats stream backup`. */
  readonly tokens: TokenBackup | undefined;
  readonly sinks: SinkBackup;
};

/**
 * A backup, or the folder of one workspace in it, which is also what `nats stream backup` makes.
 * @throws CommandError for a folder that is no backup, or an incomplete one
 */
export async function readBackup(folder: string): Promise<ReadBackup> {
  if (await isThere(join(folder, piecesFile))) return { logs: [await readLog(folder)], tokens: undefined, sinks: {} };
  if (!(await isThere(folder))) throw new CommandError(`there is no folder ${folder}.`);
  const names = await readdir(folder).catch(() => []);
  const logs: LogBackup[] = [];
  for (const name of names) {
    const log = join(folder, name);
    if (await isThere(join(log, piecesFile))) logs.push(await readLog(log));
    else if (await isThere(join(log, snapshotFile))) throw new CommandError(lacks(log, piecesFile));
  }
  if (logs.length === 0) {
    throw new CommandError(`${folder} is not a backup of logs: no folder in it has a ${piecesFile}.`);
  }
  const tokens = await jsonIn(join(folder, tokensFile), tokenBackup, "tokens");
  if (tokens === undefined) throw new CommandError(lacks(folder, tokensFile));
  return { logs, tokens, sinks: (await jsonIn(join(folder, sinksFile), sinkBackup, "sinks")) ?? {} };
}

const lacks = (folder: string, file: string) => `the backup in ${folder} is incomplete: it has no ${file}.`;

async function readLog(folder: string): Promise<LogBackup> {
  const text = await readFile(join(folder, snapshotFile), "utf8").catch(() => undefined);
  if (text === undefined) throw new CommandError(lacks(folder, snapshotFile));
  const snapshot = snapshotIn(text, folder);
  const workspace = workspaceOfStream(snapshot.config.name);
  if (workspace === undefined) throw new CommandError(`${folder} is a backup of something else than a log.`);
  const pieces = () => createReadStream(join(folder, piecesFile), { highWaterMark: 128 * 1024 });
  return { workspace, snapshot, pieces };
}

const isThere = (path: string) => stat(path).then(Boolean, () => false);

async function jsonIn<T>(file: string, schema: z.ZodType<T>, what: string): Promise<T | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new CommandError(`${file} is not a valid backup of ${what}.`, { cause });
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
