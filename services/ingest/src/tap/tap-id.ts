import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
  const before = read(path);
  const tap = before === undefined || isAlive(before.pid) ? ulid() : before.tap;
  const mine: IdFile = { tap, pid: process.pid };
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(path, `${JSON.stringify(mine)}\n`, { mode: 0o600 });
  } catch {
    // Without it the next start waits until the lease has run out.
  }
  return {
    tap,
    [Symbol.dispose]() {
      if (read(path)?.tap === tap) rmSync(path, { force: true });
    },
  };
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
