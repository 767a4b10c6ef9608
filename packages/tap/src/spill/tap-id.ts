import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ulid } from "ulid";
import { claim, inherit } from "./ownership.ts";

/** The id of a tap. Disposing it forgets the id. */
export type TapId = Disposable & { readonly tap: string };

type IdFile = { readonly tap: string; readonly pid: number };

/**
 * The tap id that an earlier process used for a source in this folder, if that process is gone: the tap continues where it
 * was killed and gets its source back at once. Otherwise, or if `isFree` refuses the id, a new id. Disposing forgets it.
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
    // Another living tap has the file, or it can't be written. The next start then waits until the lease has expired.
    return { tap, [Symbol.dispose]: () => {} };
  }
}
