import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import { inspectSegment, type Segment } from "./segment.ts";

/** What a tap says of itself; `first_index` is the spill's to know. */
export type TapIdentity = Omit<Hello, "first_index" | "settings" | "_unknownFields"> & {
  readonly settings?: Hello["settings"];
};

type TapFile = { readonly pid: number; readonly committed: string; readonly hello: unknown };

const tapFile = "tap.json";
const segmentName = /^\d{20}\.spill$/;

export function segmentPath(dir: string, first: bigint): string {
  return join(dir, `${first.toString().padStart(20, "0")}.spill`);
}

/** Says whose items these are, so that another process can push them one day. What was there stays when it throws. */
export function writeTapFile(dir: string, hello: TapIdentity, committed: bigint): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const text: TapFile = {
    pid: process.pid,
    committed: committed.toString(),
    hello: Hello.toJSON({ settings: {}, ...hello, first_index: 0n }),
  };
  const path = join(dir, tapFile);
  // On a full disk, or killed in between, half a file would make all of the spill unknown.
  writeFileSync(`${path}.new`, `${JSON.stringify(text)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export type FoundSpill = {
  readonly hello: TapIdentity;
  readonly committed: bigint;
  readonly segments: readonly Segment[];
};

/** What a spill's folder holds; undefined if it never came to one. */
export async function readSpillFolder(dir: string): Promise<FoundSpill | undefined> {
  const file = readTapFile(dir);
  if (file === undefined) return undefined;
  const names = (await readdir(dir)).filter((name) => segmentName.test(name)).sort();
  const found = await Promise.all(names.map((name) => inspectSegment(join(dir, name))));
  const { first_index: _, ...hello } = Hello.fromJSON(file.hello);
  return { hello, committed: BigInt(file.committed), segments: found.filter((segment) => segment !== undefined) };
}

export function removeSpillFolder(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}

/** Folders below `root` whose tap is gone and has left items behind. */
export async function orphanedSpills(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => []);
  return names
    .map((name) => join(root, name))
    .filter((dir) => {
      const file = readTapFile(dir);
      return file !== undefined && !isAlive(file.pid);
    });
}

function readTapFile(dir: string): TapFile | undefined {
  try {
    return JSON.parse(readFileSync(join(dir, tapFile), "utf8")) as TapFile;
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
