import type { SourceName } from "@tapedeck/shared/source";
import type { RememberedHistory } from "../journal/load-history.ts";
import type { WorkspaceSessions } from "./imported-id.ts";
import { ExpiringMemory, type Memory } from "./memory.ts";

/**
 * What the last imports have read of the log. Every session of a file is an import of its own, and the next import would
 * read the same again. It only saves reading: its users ask the log whether anything was written since.
 */
export type ImportMemory = {
  readonly histories: Memory<SourceName, RememberedHistory>;
  /** By workspace. */
  readonly sessions: Memory<string, WorkspaceSessions>;
};

/** Belongs to one log. */
export function importMemory(): ImportMemory {
  return { histories: new ExpiringMemory(), sessions: new ExpiringMemory() };
}
