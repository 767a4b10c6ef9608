import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { ulid } from "ulid";
import { isAlive, thisProcess } from "./process-identity.ts";

/** A file that names an owner: the process in it, while it lives. `started` distinguishes it from a later process. */
type Owned = { readonly pid: number; readonly started?: string | undefined };

/** The files that this process owns. In a container an earlier process may have had the same process id. */
const ours = new Set<string>();

/** Notes that this process owns the file, or no longer owns it. */
export function noteOwner(path: string, isOurs: boolean): void {
  if (isOurs) ours.add(resolve(path));
  else ours.delete(resolve(path));
}

/** True while the process that owns the file lives. */
export function hasOwner(path: string, { pid, started }: Owned): boolean {
  if (pid === process.pid) return ours.has(resolve(path));
  return isAlive({ pid, started });
}

/** The contents of the file; undefined if it is missing or can't be read. */
export function readOwned<File extends Owned>(path: string): File | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as File;
  } catch {
    return undefined;
  }
}

/**
 * Takes a file over from a process that is gone. If several processes try at once, one gets it. Undefined if there is no
 * file, or if its owner lives.
 */
export function inherit<File extends Owned>(path: string): File | undefined {
  const before = readOwned<File>(path);
  if (before !== undefined && hasOwner(path, before)) return undefined;
  const taken = aside(path);
  try {
    renameSync(path, taken);
    const found = readOwned<File>(taken);
    // Another process was faster, and this file is its own.
    const isAnothers = found !== undefined && hasOwner(path, found);
    if (isAnothers) linkSync(taken, path);
    rmSync(taken);
    return isAnothers ? undefined : found;
  } catch {
    return undefined;
  }
}

/** Makes the file atomically, owned by this process. Disposing removes it. Throws if the file exists. */
export function claim<File extends object>(path: string, file: File): Disposable {
  const whole = aside(path);
  writeFileSync(whole, `${JSON.stringify({ ...file, ...thisProcess() })}\n`, { mode: 0o600 });
  try {
    linkSync(whole, path);
  } finally {
    rmSync(whole);
  }
  noteOwner(path, true);
  return {
    [Symbol.dispose]() {
      if (readOwned(path)?.pid === process.pid) rmSync(path, { force: true });
      noteOwner(path, false);
    },
  };
}

/** A unique path beside the file. */
function aside(path: string): string {
  return `${path}.${process.pid}.${ulid()}`;
}
