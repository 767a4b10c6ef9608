import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ulid } from "ulid";

export type TapId = Disposable & { readonly tap: string };

type IdFile = { readonly tap: string; readonly pid: number };

/**
 * The id of the tap that a folder's earlier process had for a source, if that process is gone: it goes on where that one
 * was killed, and has its source again at once. Else a new one. Disposing forgets it.
 */
export function takeTapId(folder: string, source: string): TapId {
  const path = join(folder, `${source.replaceAll("/", ".")}.tap.json`);
  const tap = inherit(path) ?? ulid();
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    write(path, { tap, pid: process.pid });
  } catch {
    // Another living tap has it, or it can't be written: then the next start waits until the lease has run out.
  }
  return {
    tap,
    [Symbol.dispose]() {
      const now = read(path);
      if (now?.tap === tap && now.pid === process.pid) rmSync(path, { force: true });
    },
  };
}

/** Of several that start at once, one gets it. */
function inherit(path: string): string | undefined {
  const before = read(path);
  if (before !== undefined && isAlive(before.pid)) return undefined;
  const taken = aside(path);
  try {
    renameSync(path, taken);
    const found = read(taken);
    // Another one has come first, and this is its own.
    const isAnothers = found !== undefined && isAlive(found.pid);
    if (isAnothers) linkSync(taken, path);
    rmSync(taken);
    return isAnothers ? undefined : found?.tap;
  } catch {
    return undefined;
  }
}

/** All of it at once. Throws if there is one. */
function write(path: string, file: IdFile): void {
  const whole = aside(path);
  writeFileSync(whole, `${JSON.stringify(file)}\n`, { mode: 0o600 });
  try {
    linkSync(whole, path);
  } finally {
    rmSync(whole);
  }
}

/** A path of our own beside it. */
function aside(path: string): string {
  return `${path}.${process.pid}.${ulid()}`;
}

function read(path: string): IdFile | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as IdFile;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM";
  }
}
