import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ulid } from "ulid";
import { claim, inherit } from "./ownership.ts";

export type TapId = Disposable & { readonly tap: string };

type IdFile = { readonly tap: string; readonly pid: number };

/**
 * The id of the tap that a folder's earlier process had for a source, if that process is gone: it goes on where that one
 * was killed, and has its source again at once. Else, or where `isFree` says no, a new one. Disposing forgets it.
 */
export function takeTapId(folder: string, source: string, isFree: (tap: string) => boolean = () => true): TapId {
  const path = join(folder, `${source.replaceAll("/", ".")}.tap.json`);
  const before = inherit<IdFile>(path)?.tap;
  const tap = before !== undefined && isFree(before) ? before : ulid();
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const owned = claim(path, { tap });
    return { tap, [Symbol.dispose]: () => owned[Symbol.dispose]() };
  } catch {
    // Another living tap has it, or it can't be written: then the next start waits until the lease has run out.
    return { tap, [Symbol.dispose]: () => {} };
  }
}
