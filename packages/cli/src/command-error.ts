import { ownValue } from "@tapedeck/shared/own-value";

/** What is wrong and how to fix it: one sentence, which goes to stderr; the exit code is 1. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

const systemErrors: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full: free some space and start again",
  EACCES: "permission denied: choose another folder, or change its owner",
  EROFS: "the file system is read-only: choose another folder",
  EMFILE: "too many files are open: raise the limit (ulimit -n)",
};

/** Any error as something to read: our own as they are, the system's with what to do. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, path } = error as NodeJS.ErrnoException;
  const known = typeof code === "string" ? ownValue(systemErrors, code) : undefined;
  if (known === undefined) return error.message;
  return path === undefined ? known : `${path}: ${known}`;
}
