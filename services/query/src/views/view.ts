import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import type { Tx } from "../db/database.ts";
import type { OperationRow, Schema } from "../db/schema.ts";

export type EarlierEvents = Pick<LogReader, "read">;

/** What views know of a batch besides its events. */
export type BatchContext = {
  /** For events before the batch. What they say depends on their positions, which are given. */
  readonly log: EarlierEvents;
  /** The operations that the views before have changed, by id. Rows may have changed again since. */
  readonly changed: Map<string, OperationRow>;
  /** The operations that ended in it, in the order of their ends. */
  readonly ended: EndedOperation[];
  /** What the dev loops that ended in it waited for. */
  readonly waited: LoopWaits[];
};

/** An operation as it was when an outcome of it was known for the first time. */
export type EndedOperation = { readonly row: OperationRow; readonly recordedAt: Date };

/** How long a loop waited for each phase, in milliseconds. */
export type LoopWaits = EndedOperation & { readonly waits: ReadonlyMap<string, number> };

export function emptyContext(log: EarlierEvents): BatchContext {
  return { log, changed: new Map(), ended: [], waited: [] };
}

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
  /** Set for a view that counts events even of erased sources. */
  readonly countsErased?: true;
  /** Views that have to be applied before this one, which reads what they write. */
  readonly after?: readonly View[];
  readonly apply: (tx: Tx, batch: readonly RecordedEvent[], context: BatchContext) => Promise<void>;
};

export function sourceColumns(source: string) {
  return { source, ...sourceParts(source as SourceName) };
}
