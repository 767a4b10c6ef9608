import { join } from "node:path";
import { debianMirror, downloadDebianPackages, unpackDebianPackages } from "./debian-packages.ts";
import type { FetchNats } from "./nats-release.ts";

/** Fetches Debian's package `nats-server` of suite sid (stable's is too old) and unpacks it into the folder. */
export async function fetchNatsFromDebian({ folder, log }: FetchNats): Promise<string> {
  log(`fetching nats-server from Debian sid (${debianMirror})`);
  const archives = await downloadDebianPackages({ folder, suite: "sid", names: ["nats-server"] });
  const unpacked = join(folder, "unpacked");
  await unpackDebianPackages(archives, unpacked);
  return join(unpacked, "usr", "sbin", "nats-server");
}
