import type { LogReader } from "@tapedeck/shared/log/log";
import type { Database } from "../db/database.ts";
import type { ProjectedPosition } from "../projecting/progress.ts";
import type { Rebuild } from "../projecting/rebuild.ts";
import type { Folds } from "../views/states/fold.ts";
import type { NewestStates } from "../views/states/newest-states.ts";
import type { LastSeenSources } from "./last-seen-sources.ts";

/** The dependencies of the answers to a workspace. */
export type ApiDeps = {
  readonly workspace: string;
  /** Throws `not_ready` while the database is unavailable, or the tables of the workspace are another log's; `log` likewise. */
  readonly database: () => Database;
  readonly log: () => LogReader;
  /** How far the tables of the workspace are. */
  readonly progress: ProjectedPosition;
  readonly folds: Folds;
  /** The states that this process has written. Absent: it writes none. */
  readonly newest?: Pick<NewestStates, "of">;
  /** Absent: nobody reports when polled sources were heard. */
  readonly lastSeen?: Pick<LastSeenSources, "of">;
};

/** See rebuild and rebuildWorkspace. */
export type RebuildTables = (
  options: {
    /** Undefined: all. */
    readonly workspace: string | undefined;
  } & Required<Pick<Rebuild, "fresh" | "signal" | "onBegun" | "onProgress">>,
) => Promise<boolean>;

export type CallScope = {
  /** Aborts when the caller is gone or the call's time is up. */
  readonly signal: AbortSignal;
};
