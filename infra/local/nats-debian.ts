import { join } from "node:path";
import { DEBIAN_MIRROR, downloadDebianPackages, unpackDebianPackages } from "./debian-packages.ts";
import type { FetchNats } from "./nats-release.ts";

/** Fetches Debian's package `nats-server` of suite sid (stable's is too old) and unpacks it into the folder. */
export const fetchNatsFromDebian = async ({ folder, log }: FetchNats): Promise<string> => {
  log(`fetching nats-server from Debian sid (${DEBIAN_MIRROR})`);
  const archives = await downloadDebianPackages({ folder, suite: "sid", names: ["nats-server"] });
  const unpacked = join(folder, "unpacked");
  await unpackDebianPackages(archives, unpacked);
  return join(unpacked, "usr", "sbin", "nats-server");
};
