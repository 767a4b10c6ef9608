import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import type { Tx } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";

/**
 * A view of the log. What it writes depends on the events alone, never on how they were cut into batches. Its tables and
 * the checkpoint change in one transaction, so it applies every event once.
 */
export type View = {
  readonly name: string;
  /** Raised when the same events would give other rows, so that the tables are rebuilt from the log. */
  readonly version: number;
  /** Its tables that hold rows of sessions; session.erased empties them of the session. */
  readonly sessionTables: readonly (keyof Schema)[];
  /** A view that has to be applied before this one, which reads what it writes. */
  readonly after?: View;
  readonly apply: (tx: Tx, batch: readonly RecordedEvent[]) => Promise<void>;
};

export function sourceColumns(source: string) {
  return { source, ...sourceParts(source as SourceName) };
}
