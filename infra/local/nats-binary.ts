import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { LocalServerError } from "./local-server-error.ts";
import { fetchNatsFromDebian } from "./nats-debian.ts";
import { type FetchNats, fetchNatsRelease } from "./nats-release.ts";
import { run } from "./run.ts";

/** The oldest version that Tapedeck is tested with. */
const OLDEST: readonly [number, number] = [2, 12];

export type FindNatsServer = {
  /** Where what is fetched is kept. */
  readonly bin: string;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
  /** Where to fetch from, in this order. Default: the official release, then Debian. */
  readonly sources?: readonly ((fetch: FetchNats) => Promise<string>)[];
};

/**
 * The path of a nats-server that is new enough: from PATH, from that folder, from the official release, or from Debian.
 * @throws LocalServerError that says what to install when none of these gives one
 */
export async function findNatsServer({
  bin,
  log,
  signal,
  sources = [fetchNatsRelease, fetchNatsFromDebian],
}: FindNatsServer): Promise<string> {
  const installed = await natsVersion("nats-server");
  if (installed !== undefined && isNewEnough(installed)) return "nats-server";

  const kept = join(bin, "nats-server");
  if (existsSync(kept)) {
    const version = await natsVersion(kept);
    if (version !== undefined && isNewEnough(version)) return kept;
  }

  await mkdir(bin, { recursive: true });
  const failures: string[] = [];
  for (const fetch of sources) {
    // A private folder and a rename at the end: two processes that fetch at once both end with a whole binary.
    const folder = await mkdtemp(join(bin, ".fetch-"));
    try {
      const fetched = await fetch({ folder, log, ...(signal && { signal }) });
      const version = await natsVersion(fetched);
      if (version === undefined || !isNewEnough(version)) throw new Error(`what was fetched is version ${version}`);
      await rename(fetched, kept);
      return kept;
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  const found = installed === undefined ? "" : ` (the one on PATH is ${installed})`;
  throw new LocalServerError(
    `nats-server ${OLDEST.join(".")} or newer is needed${found} and could not be fetched (${failures.join("; ")}): ` +
      "install it (macOS: brew install nats-server; elsewhere: https://github.com/nats-io/nats-server/releases) so that it is on PATH.",
  );
}

/** `2.15.1`, or undefined when there is no such program. */
export async function natsVersion(binary: string): Promise<string | undefined> {
  const { stdout } = await run(binary, ["--version"]);
  return /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
}

export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
