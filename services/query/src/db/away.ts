import { NoPrimaryError } from "./primary.ts";

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
