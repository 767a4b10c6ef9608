import { Client, escapeLiteral } from "pg";
import { LocalServerError } from "./local-server-error.ts";
import type { PostgresBinaries } from "./postgres-binaries.ts";
import type { AsPostgres } from "./postgres-user.ts";
import { run } from "./run.ts";

const invalidPassword = "28P01";

/** Whether the running server takes the password in this connection string. Other trouble is thrown. */
export async function acceptsPassword(url: string): Promise<boolean> {
  const client = new Client(url);
  try {
    await client.connect();
    return true;
  } catch (error) {
    if ((error as { code?: string }).code === invalidPassword) return false;
    throw error;
  } finally {
    await client.end();
  }
}

/**
 * Sets another password for the superuser, for example after the file with the secrets was lost. The server must be
 * stopped.
 */
export async function setPassword(
  dataDir: string,
  password: string,
  { postgres }: PostgresBinaries,
  as: AsPostgres,
): Promise<void> {
  const { command, args, user } = as.command(postgres, ["--single", "-D", dataDir, "postgres"]);
  const statement = `alter role postgres password ${escapeLiteral(password)}\n`;
  const { code } = await run(command, args, { env: { ...process.env, LC_ALL: "C" }, ...user }, statement);
  // The server's error may repeat the statement, and the password with it.
  if (code !== 0) throw new LocalServerError(`the password of Postgres on ${dataDir} is unknown and can't be changed.`);
}
