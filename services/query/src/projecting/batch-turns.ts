import type { Gathering } from "@tapedeck/shared/log/connect-log";
import type { ProjectedPosition } from "./progress.ts";

/** One batch in so many milliseconds, of all workspaces together: each costs the database the same, however few events it has. */
const everyMs = 50;
const minWaitMs = 20;
/** No table is older than this because of others. */
const maxWaitMs = 1_000;

/** Gives the batches of all workspaces their turns, so that many that have few events each don't cost more than one with many. */
export class BatchTurns {
  #next = 0;

  /** How long the first event of a batch waits for others. */
  waitMs(now = performance.now()): number {
    const wait = Math.min(Math.max(this.#next - now, minWaitMs), maxWaitMs);
    this.#next = Math.min(Math.max(this.#next, now), now + maxWaitMs) + everyMs;
    return wait;
  }
}

/** Lets the events of each workspace gather until its turn, unless a reader waits for them. */
export function gatheringBatches(
  progressOf: (workspace: string) => Pick<ProjectedPosition, "isAwaited" | "onAwaited">,
): (workspace: string) => Gathering {
  const turns = new BatchTurns();
  return (workspace) => ({
    waitMs: () => turns.waitMs(),
    // A workspace that was removed, and begins again, has another one.
    isAwaited: () => progressOf(workspace).isAwaited,
    onAwaited: (wake) => progressOf(workspace).onAwaited(wake),
  });
}
