import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { ChangedFile, ChangedFiles } from "@tapedeck/proto/tapedeck/v1/event";
import { git } from "./git.ts";

const maxFiles = 50;
const maxBytes = 8_192;
/** Files beyond these are compared by git's status alone. */
const maxStats = 1_000;

type Change = ChangedFile["change"];
/** A file that is not as it was committed. `version`: size and time of its content. */
type Uncommitted = { readonly change: Change; readonly version: string };
type Checkout = { readonly commit: string; readonly files: ReadonlyMap<string, Uncommitted> };

/**
 * The files of a repository that changed since the last call; at first, those that are not committed. Names alone: no file
 * is opened, and git takes no lock.
 */
export class ChangedFilesReader {
  readonly #folder: string;
  #root: string | undefined;
  #known: Checkout | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Undefined: git gave no answer. Never rejects. */
  async read(): Promise<ChangedFiles | undefined> {
    this.#root ??= (await git(this.#folder, "rev-parse", "--show-toplevel"))?.replace(/\n$/, "");
    if (this.#root === undefined) return undefined;
    const now = await checkoutOf(this.#root);
    if (now === undefined) return undefined;
    const changes = await changesBetween(this.#root, this.#known, now);
    this.#known = now;
    return bounded(changes);
  }
}

async function checkoutOf(root: string): Promise<Checkout | undefined> {
  const [head, status] = await Promise.all([
    git(root, "rev-parse", "--verify", "--quiet", "HEAD"),
    git(root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"),
  ]);
  if (status === undefined) return undefined;
  const entries = status.split("\0").filter((entry) => entry !== "");
  const files = await Promise.all(
    entries.map(async (entry, index) => {
      const [letters, path] = [entry.slice(0, 2), entry.slice(3)];
      const version = index < maxStats ? await versionOf(join(root, path)) : letters;
      return [path, { change: changeOf(letters), version }] as const;
    }),
  );
  // A repository without a commit has no HEAD.
  return { commit: (head ?? "").trim(), files: new Map(files) };
}

async function versionOf(path: string): Promise<string> {
  const stats = await lstat(path).catch(() => undefined);
  return stats === undefined ? "" : `${stats.size} ${stats.mtimeMs}`;
}

function changeOf(letters: string): Change {
  if (letters.includes("D")) return "deleted";
  return /[?A]/.test(letters) ? "added" : "modified";
}

async function changesBetween(
  root: string,
  before: Checkout | undefined,
  now: Checkout,
): Promise<ReadonlyMap<string, Change>> {
  const changes = new Map<string, Change>();
  for (const [path, { change, version }] of now.files) {
    const known = before?.files.get(path);
    if (known === undefined || known.version !== version)
      changes.set(path, known && version !== "" ? "modified" : change);
  }
  if (before === undefined) return changes;
  const committed = await committedBetween(root, before.commit, now.commit);
  for (const [path, change] of committed) {
    // A file that was only committed has the content that it had before.
    const known = before.files.get(path);
    if (now.files.has(path)) continue;
    if (known === undefined || known.version !== (await versionOf(join(root, path)))) changes.set(path, change);
  }
  for (const [path, { change }] of before.files) {
    if (!now.files.has(path) && !committed.has(path)) changes.set(path, undone.get(change) ?? "modified");
  }
  return changes;
}

/** What became of a file whose change was undone. */
const undone: ReadonlyMap<Change, Change> = new Map([
  ["added", "deleted"],
  ["deleted", "added"],
]);

async function committedBetween(root: string, before: string, now: string): Promise<ReadonlyMap<string, Change>> {
  if (before === now || before === "" || now === "") return new Map();
  const listed = await git(root, "diff-tree", "-r", "--name-status", "-z", "--no-renames", before, now);
  const parts = (listed ?? "").split("\0");
  const pairs = Array.from({ length: Math.floor(parts.length / 2) }, (_, index) =>
    parts.slice(2 * index, 2 * index + 2),
  );
  return new Map(pairs.map(([letter = "", path = ""]) => [path, changeOf(letter)]));
}

function bounded(changes: ReadonlyMap<string, Change>): ChangedFiles {
  const files: ChangedFile[] = [];
  let bytes = 0;
  for (const [path, change] of changes) {
    bytes += Buffer.byteLength(path);
    if (files.length === maxFiles || bytes > maxBytes) break;
    files.push({ path, change });
  }
  return { files, more: changes.size - files.length };
}
