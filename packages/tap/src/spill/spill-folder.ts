import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import { claim, hasOwner, inherit, noteOwner, readOwned } from "./ownership.ts";
import { type ProcessIdentity, thisProcess } from "./process-identity.ts";
import { inspectSegment, type Segment } from "./segment.ts";

/** A tap's Hello without `first_index`, which the spill knows. */
export type TapIdentity = Omit<Hello, "first_index" | "settings" | "_unknownFields"> & {
  readonly settings?: Hello["settings"];
};

type TapFile = ProcessIdentity & {
  readonly committed: string;
  readonly hello: unknown;
  readonly to?: string | undefined;
};

const tapFile = "tap.json";
const segmentName = /^\d{20}\.spill$/;

/** The file of the segment that begins with this index. */
export function segmentPath(dir: string, first: bigint): string {
  return join(dir, `${first.toString().padStart(20, "0")}.spill`);
}

/** The source whose items a spill holds, and the Tapedeck that they are for. */
export type SpillOwner = {
  readonly hello: TapIdentity;
  /** The name of the Tapedeck that the items are for; undefined for this machine's own. */
  readonly to?: string | undefined;
  readonly committed: bigint;
};

/** Writes who owns the items, so that another process can push them later. If it throws, the old file stays. */
export function writeTapFile(dir: string, { hello, to, committed }: SpillOwner): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const text: TapFile = {
    ...thisProcess(),
    committed: committed.toString(),
    hello: Hello.toJSON({ settings: {}, ...hello, first_index: 0n }),
    to,
  };
  const path = join(dir, tapFile);
  // With half a file, after a full disk or a kill, the whole spill would be unknown.
  writeFileSync(`${path}.new`, `${JSON.stringify(text)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  noteOwner(path, true);
}

/** Gives the folder up, so that any other process may push it. */
export function leaveSpillFolder(dir: string): void {
  noteOwner(join(dir, tapFile), false);
}

/** A spill on disk, as it was left. */
export type FoundSpill = SpillOwner & { readonly segments: readonly Segment[] };

/** The contents of a spill's folder; undefined if it has no tap file. */
export async function readSpillFolder(dir: string): Promise<FoundSpill | undefined> {
  const file = readTapFile(dir);
  if (file === undefined) return undefined;
  const names = (await readdir(dir)).filter((name) => segmentName.test(name)).sort();
  const found = await Promise.all(names.map((name) => inspectSegment(join(dir, name))));
  return { ...ownerIn(file), segments: found.filter((segment) => segment !== undefined) };
}

/** Removes the folder with everything in it. */
export function removeSpillFolder(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}

/** A spill whose process is gone. */
export type OrphanedSpill = SpillOwner & { readonly dir: string };

/** The spills below `root` whose taps are gone, in the order in which they began. */
export async function orphanedSpills(root: string): Promise<OrphanedSpill[]> {
  const names = await readdir(root).catch(() => []);
  return names.sort().flatMap((name) => {
    const dir = join(root, name);
    const file = readTapFile(dir);
    return file === undefined || hasOwner(join(dir, tapFile), file) ? [] : [{ dir, ...ownerIn(file) }];
  });
}

/**
 * Prevents other processes from pushing an orphaned spill. Hold the claim while the spill is open. Undefined if another
 * process has claimed it, or has pushed it already.
 */
export function claimOrphan(dir: string): Disposable | undefined {
  const path = `${dir}.claim.json`;
  inherit(path);
  try {
    const claimed = claim(path, {});
    const file = readTapFile(dir);
    if (file !== undefined && !hasOwner(join(dir, tapFile), file)) return claimed;
    claimed[Symbol.dispose]();
  } catch {
    // Another process has claimed it, or the disk is full.
  }
  return undefined;
}

function ownerIn({ hello: text, to, committed }: TapFile): SpillOwner {
  const { first_index: _, ...hello } = Hello.fromJSON(text);
  return { hello, to, committed: BigInt(committed) };
}

function readTapFile(dir: string): TapFile | undefined {
  return readOwned<TapFile>(join(dir, tapFile));
}
