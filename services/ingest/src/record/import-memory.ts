import type { SourceName } from "@tapedeck/shared/source";
import type { RememberedHistory } from "./journal/source-history.ts";
import type { WorkspaceSessions } from "./session/imported-id.ts";
import { type Memory, memory } from "./short-memory.ts";

/**
 * What the last imports have read of the log and the next one would read again: a file of many sessions is as many
 * imports. It only spares reading: whoever uses it asks the log whether that is still all that it has.
 */
export type ImportMemory = {
  readonly histories: Memory<SourceName, RememberedHistory>;
  /** By workspace. */
  readonly sessions: Memory<string, WorkspaceSessions>;
};

/** Belongs to one log. */
export function importMemory(): ImportMemory {
  return { histories: memory(), sessions: memory() };
}
