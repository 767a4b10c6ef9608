import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { ulid } from "ulid";
import { isAlive, thisProcess } from "./process-identity.ts";

/** A file that says whose something is: the process in it, as long as that lives. `started` tells it from a later one. */
type Owned = { readonly pid: number; readonly started?: string | undefined };

/** What this process has put its number into. In a container the process before us may have had the same one. */
const ours = new Set<string>();

/** This process has written its number to that path, or takes it back. */
export function noteOwner(path: string, isOurs: boolean): void {
  if (isOurs) ours.add(resolve(path));
  else ours.delete(resolve(path));
}

/** Whether the process that has put its number there lives. */
export function hasOwner(path: string, { pid, started }: Owned): boolean {
  if (pid === process.pid) return ours.has(resolve(path));
  return isAlive({ pid, started });
}

/** The file as it is; undefined if there is none that can be understood. */
export function readOwned<File extends Owned>(path: string): File | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as File;
  } catch {
    return undefined;
  }
}

/**
 * Takes a file away from a process that is gone; of several that try at once, one gets it. Undefined if there is none, or
 * its owner lives.
 */
export function inherit<File extends Owned>(path: string): File | undefined {
  const before = readOwned<File>(path);
  if (before !== undefined && hasOwner(path, before)) return undefined;
  const taken = aside(path);
  try {
    renameSync(path, taken);
    const found = readOwned<File>(taken);
    // Another one has come first, and this is its own.
    const isAnothers = found !== undefined && hasOwner(path, found);
    if (isAnothers) linkSync(taken, path);
    rmSync(taken);
    return isAnothers ? undefined : found;
  } catch {
    return undefined;
  }
}

/** Makes the file ours, all of it at once. Disposing removes it. Throws if there is one. */
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

/** A path of our own beside it. */
function aside(path: string): string {
  return `${path}.${process.pid}.${ulid()}`;
}
