import { abortable } from "@tapedeck/shared/sync/abortable";
import { delay } from "@tapedeck/shared/sync/delay";
import { readCheckpoints } from "../db/checkpoint.ts";
import { type TakeOverOptions, TakeOvers } from "./take-over/take-overs.ts";
import { type ProjectionDeps, WorkspaceProjection } from "./workspace-projection.ts";
import type { WorkspaceStates } from "./workspace-state.ts";

export type ProjectAll = ProjectionDeps & {
  readonly states: WorkspaceStates;
  readonly takeOver: Pick<TakeOverOptions, "assigned" | "nats" | "names" | "leaveMs">;
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
 * Projects every workspace of this query that has a log, each by itself, until the signal, and takes workspaces over. One whose
 * log begins is noticed at once.
 * @throws OldTablesError
 */
export async function projectAll(options: ProjectAll): Promise<void> {
  const { states, logs, database, takeOver, logger, signal } = options;
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const running = new RunningProjections(options, ended);
  const { begin, failed } = running;
  states.onWanted = begin;
  let taking: Promise<void> | undefined;
  try {
    using _watch = logs.watch(begin);
    // It begins again, and then its rows are deleted.
    using _removals = logs.watchRemoved(running.restart);
    for (const { workspace } of await readCheckpoints(database.db)) begin(workspace);
    for (const workspace of await logs.names()) begin(workspace);
    taking = new TakeOvers({ ...takeOver, database, states, logger }, running).run(ended);
    const decided = Promise.all(states.all().map((state) => state.decided));
    await abortable(Promise.race([decided, failed, delay(beginMs, ended)]), ended);
    options.onBegun();
    await abortable(failed, ended);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    states.onWanted = undefined;
    stop.abort();
    await taking;
    await running.over();
  }
}

class RunningProjections {
  readonly #options: ProjectAll;
  readonly #ended: AbortSignal;
  readonly #running = new Map<string, { over: Promise<void>; stop: AbortController }>();
  readonly #failed = Promise.withResolvers<never>();

  constructor(options: ProjectAll, ended: AbortSignal) {
    this.#options = options;
    this.#ended = ended;
    this.#failed.promise.catch(() => {});
  }

  /** Rejects with the first error that does not concern one workspace alone. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  readonly begin = (workspace: string): void => {
    if (this.#running.has(workspace) || this.#ended.aborted) return;
    const own = { over: Promise.resolve(), stop: new AbortController() };
    this.#running.set(workspace, own);
    own.over = this.#run(workspace, own).catch(this.#failed.reject);
  };

  /** Stops what projects a workspace, and begins it again from what is in the tables then. */
  readonly restart = (workspace: string): void => {
    const own = this.#running.get(workspace);
    if (own === undefined) this.begin(workspace);
    else own.stop.abort();
  };

  async over(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ over }) => over));
  }

  async #run(workspace: string, own: { stop: AbortController }): Promise<void> {
    const { states, limits } = this.#options;
    const state = states.of(workspace);
    const bytes = Math.max(leastBytes, Math.min(limits.bytes, maxBytes / this.#running.size));
    const projection = new WorkspaceProjection(state, { ...this.#options, limits: { ...limits, bytes } });
    do {
      own.stop = new AbortController();
      await projection.run(AbortSignal.any([this.#ended, own.stop.signal]));
    } while (own.stop.signal.aborted && !this.#ended.aborted);
    this.#running.delete(workspace);
    if (this.#ended.aborted) return;
    states.forget(workspace);
    state.ends();
    // A log of the same name may have begun.
    if (state.isRemoved) this.begin(workspace);
  }
}
