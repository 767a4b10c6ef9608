import { isLogMissing } from "@tapedeck/shared/log/jetstream";
import { logStart } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import type { Logger } from "@tapedeck/shared/service/logger";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { ForeignCheckpointError, lostLog, readAnyCheckpoint } from "../db/checkpoint.ts";
import type { Database } from "../db/database.ts";
import type { Pipelines } from "../db/pipelines.ts";
import type { CheckpointRow } from "../db/schema.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import type { BatchLimits } from "./batches.ts";
import { deleteWorkspace, forgetWorkspace } from "./forget/workspace.ts";
import { type Projected, project } from "./project.ts";
import type { AssignedWorkspaces } from "./take-over/assigned-workspaces.ts";
import type { WorkspaceLogs } from "./workspace-logs.ts";
import type { WorkspaceState } from "./workspace-state.ts";

export type ProjectionDeps = {
  readonly database: Database;
  /** Nobody else may write the tables. */
  readonly pipelines: Pipelines;
  readonly logs: WorkspaceLogs;
  readonly assigned: Pick<AssignedWorkspaces, "isProjected">;
  readonly views: readonly View[];
  readonly limits: BatchLimits;
  readonly logger: Logger;
  readonly onApplied: (applied: Projected) => void;
  readonly onInterrupted: () => void;
};

/** The tables are those of another version of the views: all are made anew. */
export class OldTablesError extends Error {
  override readonly name = "OldTablesError";
}

/** Projects one workspace. What stops it stops no other. */
export class WorkspaceProjection {
  readonly #state: WorkspaceState;
  readonly #deps: ProjectionDeps;

  constructor(state: WorkspaceState, deps: ProjectionDeps) {
    this.#state = state;
    this.#deps = deps;
  }

  /**
   * Until the signal; it retries by itself. Ends before it when the workspace has neither log nor rows, was removed, or is another
   * query's.
   * @throws OldTablesError
   */
  async run(signal: AbortSignal): Promise<void> {
    const { logger, onInterrupted } = this.#deps;
    const retry = backoff(100, 2_000);
    let lastReason = "";
    const onWorking = () => {
      retry.reset();
      lastReason = "";
    };
    while (!signal.aborted) {
      try {
        if (!(await this.#once(signal, onWorking))) return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof OldTablesError) throw error;
        const reason = reasonOf(error);
        if (this.#state.waitingFor === undefined) onInterrupted();
        this.#state.waits(reason, { isRefused: error instanceof ForeignCheckpointError });
        const { workspace, progress } = this.#state;
        if (reason !== lastReason)
          logger.warn(
            { err: error, workspace, position: progress.position },
            "projecting was interrupted and will continue",
          );
        lastReason = reason;
        await delay(retry.next(), signal);
      }
    }
  }

  /** False: there is nothing to project. */
  async #once(signal: AbortSignal, onWorking: () => void): Promise<boolean> {
    const { database, pipelines, logs, assigned, views, limits, logger, onApplied } = this.#deps;
    const { workspace, progress } = this.#state;
    const checkpoint = await readAnyCheckpoint(database.db, workspace);
    const isRemoved = checkpoint !== undefined && logs.isRemoved(workspace, checkpoint.epoch);
    if (isRemoved && !checkpoint.removed) await forgetWorkspace(database.db, workspace);
    if (isRemoved || checkpoint?.removed === true) {
      this.#state.removed();
      await deleteWorkspace(pipelines.lane(), workspace, signal);
      // What this state knows is of the log that was removed.
      return false;
    }
    if (!assigned.isProjected(workspace, checkpoint !== undefined)) return false;
    const log = await logs.of(workspace).catch((cause: unknown) => {
      if (!isLogMissing(cause)) throw cause;
      if (hasEvents(checkpoint)) throw lostLog(checkpoint, cause);
      return undefined;
    });
    if (log === undefined) return false;
    this.#state.log = log;
    progress.advance(checkpoint?.position ?? logStart);
    if (checkpoint?.epoch === log.epoch && checkpoint.projection !== projectionVersion(views))
      throw new OldTablesError(`the tables were made by ${checkpoint.projection}`);
    const lane = pipelines.lane();
    for await (const applied of project({
      connection: lane,
      workspace,
      log,
      views,
      signal,
      limits,
    })) {
      onWorking();
      this.#state.follows(log.epoch);
      progress.advance(applied.position);
      onApplied(applied);
      logSetAside(logger, applied);
    }
    return true;
  }
}

/** Tables that have events show that there was a log. */
export function hasEvents(checkpoint: CheckpointRow | undefined): checkpoint is CheckpointRow {
  return checkpoint !== undefined && checkpoint.position > logStart;
}

/** One line a batch, because a source may send many of them. */
function logSetAside(logger: Logger, { setAside }: Projected): void {
  const [first] = setAside;
  if (first === undefined) return;
  const { source, session, kind } = first.recorded.event;
  logger.warn(
    { err: first.error, position: first.recorded.offset, source, session, kind, events: setAside.length },
    "events can't be applied to the tables and are set aside; the first one is named",
  );
}

/** Tables without these events would be wrong, and nothing would show it: so they stay where they are. */
export function reasonOf(error: unknown): string {
  if (error instanceof OutOfRangeError && error.details.loss === "dropped") {
    return `the tables can't follow the log, because a limit of its stream has dropped events that they lack (${error.message}): \`tapedeck rebuild\` makes them from what the log still has`;
  }
  return error instanceof Error ? error.message || error.name : String(error);
}
