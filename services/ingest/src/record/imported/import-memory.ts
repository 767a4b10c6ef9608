import type { SourceName } from "@tapedeck/shared/source";
import type { RememberedHistory } from "../journal/load-history.ts";
import type { WorkspaceSessions } from "./imported-id.ts";
import { ExpiringMemory, type Memory } from "./memory.ts";

/**
 * The parts of the log that the last imports have read. Every session of a file is a separate import, and the next one
 * would read the same again. It only saves reading: its users check whether anything was written to the log since.
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
