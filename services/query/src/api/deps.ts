import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { Database } from "../db/database.ts";
import type { ProjectedPosition } from "../projecting/progress.ts";
import type { Folds } from "../views/states/fold.ts";
import type { NewestStates } from "../views/states/newest-states.ts";
import type { LastSeenSources } from "./last-seen-sources.ts";

/** The dependencies of the answers. */
export type ApiDeps = {
  /** Throws `not_ready` while the database is unavailable; `log` does so, too. */
  readonly database: () => Database;
  readonly log: () => LogReader;
  readonly progress: ProjectedPosition;
  readonly folds: Folds;
  /** The states that this process has written. Absent: it writes none. */
  readonly newest?: Pick<NewestStates, "of">;
  /** Absent: nobody reports when polled sources were heard. */
  readonly lastSeen?: Pick<LastSeenSources, "of">;
};

/** See rebuild; `onProgress` receives the position that the new tables have reached, and how many events they got since the last one. */
export type RebuildTables = (options: {
  readonly fresh: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (applied: { readonly position: Offset; readonly events: number }) => void;
}) => Promise<boolean>;

export type CallScope = {
  /** Aborts when the caller is gone or the call's time is up. */
  readonly signal: AbortSignal;
};
