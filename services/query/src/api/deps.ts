import type { LogReader } from "@tapedeck/shared/log/log";
import type { Database } from "../db/database.ts";
import type { Progress } from "../projecting/progress.ts";
import type { Folds } from "../views/states/fold.ts";

/** What answering takes. `database` and `log` throw `not_ready` as long as theirs is away. */
export type ApiDeps = {
  readonly database: () => Database;
  readonly log: () => LogReader;
  readonly progress: Progress;
  readonly folds: Folds;
};

/** See rebuild; tells how far it has come. */
export type RebuildTables = (signal: AbortSignal, onProgress: (position: number) => void) => Promise<boolean>;

export type CallScope = {
  /** Aborted when the caller has gone or the call's time is up. */
  readonly signal: AbortSignal;
};
