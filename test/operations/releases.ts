import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";
import type { ReleaseTables } from "@tapedeck/query/testing/release-tables";

const run = promisify(execFile);

/** One folder for each release; see the README there. */
export const releasesFolder = join(import.meta.dirname, "../fixtures/releases");

const [storeFile, tablesFile, recordFile] = ["nats-store.tar.gz", "tables.json.gz", "recorded.json.gz"];

/** The contents of a fixture's log, as its version served them. */
export type Recorded = {
  readonly version: string;
  readonly logFormat: string;
  readonly events: readonly { readonly id: string; readonly position: string; readonly kind: string }[];
};

export type Release = {
  readonly name: string;
  /** A tar of the nats-server's store_dir. */
  readonly store: string;
  readonly recorded: Recorded;
  readonly tables: ReleaseTables;
};

export async function readReleases(): Promise<readonly Release[]> {
  const names = (await readdir(releasesFolder, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  return Promise.all(names.map(({ name }) => readRelease(name)));
}

async function readRelease(name: string): Promise<Release> {
  const at = (file: string) => join(releasesFolder, name, file);
  const read = async (file: string) => JSON.parse(gunzipSync(await readFile(at(file))).toString()) as unknown;
  const [tables, recorded] = [(await read(tablesFile)) as ReleaseTables, (await read(recordFile)) as Recorded];
  return { name, store: at(storeFile), recorded, tables };
}

/** @throws Error if the release has a fixture: it is never regenerated, because only its own version can */
export async function writeRelease(
  name: string,
  { storeDir, recorded, tables }: Omit<Release, "name" | "store"> & { readonly storeDir: string },
): Promise<void> {
  const folder = join(releasesFolder, name);
  await mkdir(releasesFolder, { recursive: true });
  await mkdir(folder);
  await run("tar", ["-czf", join(folder, storeFile), "-C", storeDir, "."]);
  for (const [file, what] of [
    [tablesFile, tables],
    [recordFile, recorded],
  ] as const) {
    await writeFile(join(folder, file), gzipSync(JSON.stringify(what), { level: 9 }));
  }
}

export async function unpackStore(store: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true });
  await run("tar", ["-xzf", store, "-C", into]);
}
