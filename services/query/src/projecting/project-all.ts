import { abortable } from "@tapedeck/shared/sync/abortable";
import { delay } from "@tapedeck/shared/sync/delay";
import { readCheckpoints } from "../db/checkpoint.ts";
import { type ProjectionDeps, WorkspaceProjection } from "./workspace-projection.ts";
import type { WorkspaceStates } from "./workspace-state.ts";

export type ProjectAll = ProjectionDeps & {
  readonly states: WorkspaceStates;
  /** All that had a log at the beginning are projected, or it is known why not. */
  readonly onBegun: () => void;
  /** Aborts when nobody may write the tables any more. */
  readonly signal: AbortSignal;
};

/** The batches of all workspaces together wait with about so many bytes at most; each may have some. */
const maxBytes = 64 * 1024 * 1024;
const leastBytes = 256 * 1024;
/** One that takes longer to begin does not keep the others from being ready. */
const beginMs = 5_000;

/**
 * Projects every workspace that has a log, each by itself, until the signal. A workspace whose log begins is noticed at once.
 * @throws OldTablesError
 */
export async function projectAll(options: ProjectAll): Promise<void> {
  const { states, logs, database, signal } = options;
  const failed = Promise.withResolvers<never>();
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const running = new Map<string, Promise<void>>();
  const stops = new Map<string, AbortController>();
  const begin = (workspace: string) => {
    if (running.has(workspace) || ended.aborted) return;
    const stopOne = new AbortController();
    stops.set(workspace, stopOne);
    const over = AbortSignal.any([ended, stopOne.signal]);
    const state = states.of(workspace);
    const bytes = Math.max(leastBytes, Math.min(options.limits.bytes, maxBytes / (running.size + 1)));
    const run = async () => {
      await new WorkspaceProjection(state, { ...options, limits: { ...options.limits, bytes } }).run(over);
      running.delete(workspace);
      if (ended.aborted) return;
      if (over.aborted) return begin(workspace);
      states.forget(workspace);
      state.ends();
      // A log of the same name may have begun.
      if (state.isRemoved) begin(workspace);
    };
    running.set(workspace, run().catch(failed.reject));
  };
  states.onWanted = begin;
  failed.promise.catch(() => {});
  try {
    using _watch = logs.watch(begin);
    // It begins again, and then its rows are deleted.
    using _removals = logs.watchRemoved((workspace) => stops.get(workspace)?.abort());
    for (const { workspace } of await readCheckpoints(database.db)) begin(workspace);
    for (const workspace of await logs.names()) begin(workspace);
    const decided = Promise.all(states.all().map((state) => state.decided));
    await abortable(Promise.race([decided, failed.promise, delay(beginMs, ended)]), ended);
    options.onBegun();
    await abortable(failed.promise, ended);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    states.onWanted = undefined;
    stop.abort();
    await Promise.all(running.values());
  }
}
