import { delay } from "@tapedeck/shared/sync/delay";
import { sql } from "kysely";
import type { Database } from "./database.ts";
import { NoPrimaryError } from "./primary.ts";

/** An answer may take so long before Postgres is asked something else. */
const probeAfterMs = 1_500;
/**
 * Then Postgres may be silent for so long: on a machine whose cores are busy it may not get its turn for seconds. Both together are
 * less than a new connection may take (database.ts), whose error would say less.
 */
const silentMs = 3_000;

/**
 * The answer, or an error when Postgres says nothing at all any more: it may be stopped, or a network lose what it sends, and
 * its connections stay for hours. One that takes long for this answer gives others, and is waited for.
 */
export function unlessSilent<T>({ db, heardAt }: Pick<Database, "db" | "heardAt">, answer: Promise<T>): Promise<T> {
  const over = new AbortController();
  const silence = async () => {
    for (;;) {
      await delay(probeAfterMs, over.signal);
      if (over.signal.aborted) return;
      const probedAt = performance.now();
      sql`select 1`.execute(db).catch(() => {});
      await delay(silentMs, over.signal);
      if (!over.signal.aborted && heardAt() < probedAt) return;
    }
  };
  return new Promise((resolve, reject) => {
    answer.then(resolve, reject).finally(() => over.abort());
    void silence().then(() => reject(new Error("Postgres does not answer")));
  });
}

/** SQLSTATE classes and codes of an unavailable server: connection errors, shutting down, starting up. */
const states = /^(08...|57P0[1-5]|53300)$/;
const systemCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** True when the database could not be reached or went away meanwhile, so that a later attempt may succeed. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof NoPrimaryError) return true;
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  if (states.test(code) || systemCodes.has(code)) return true;
  // pg has no codes for these errors.
  return /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/.test(
    error.message,
  );
}

/** True when the server ended a statement that took too long. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "57014";
}
