// From the log of a workspace into the tables.
//
//   log --follow--> batches --> one transaction: views' rows + checkpoint --> commit --> the tables' position
//                        \--an event can't be applied--> applyApart(): it is set aside, the rest goes on
//
// 1. A batch, or a part of it, and its checkpoint are one transaction: an event counts once, however often this is killed.
// 2. Tables follow the log that they were made from (epoch), or a restored copy of it that reaches their position. Empty
//    tables follow any log.
// 3. The next batch is computed while the last one commits. If that commit fails, the next batch fails too.
// 4. One event that can't be applied stops no other, and is reported until a later version applies it.
// A fold's state is stored whole, as one row per session: columns for all that it remembers would describe it twice.
import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { beginCheckpoint, ofThisLog, readCheckpoint } from "../db/checkpoint.ts";
import type { Lane } from "../db/pipelines.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import { applyApart } from "./apply-apart.ts";
import { type Applied, applyBatch } from "./apply-batch.ts";
import { type BatchLimits, batches, defaultLimits } from "./batches.ts";
import { isDataError } from "./data-error.ts";

/** The position of the tables; `ms` is the duration of the last batch, 0 at first. */
export type Projected = Applied & { readonly ms: number };

export type Project = {
  /** Nobody else may write its tables (see takeTables). */
  readonly connection: Lane;
  readonly workspace: string;
  /** Its log. */
  readonly log: LogReader;
  readonly views: readonly View[];
  readonly limits?: BatchLimits;
  readonly signal: AbortSignal;
};

/**
 * Follows the log of a workspace into the tables until the signal. Yields the position of the tables at first and after every commit.
 * Throws when the database or the log is unavailable; the caller starts it again.
 * @throws ForeignCheckpointError when the tables do not belong to this log
 * @throws CheckpointMovedError when another process changes them meanwhile
 */
export async function* project(options: Project): AsyncGenerator<Projected, void> {
  const { connection, workspace, log, views, limits = defaultLimits, signal } = options;
  const projection = projectionVersion(views);
  const found =
    (await readCheckpoint(connection.db, workspace)) ??
    (await beginCheckpoint(connection.db, { workspace, projection, epoch: log.epoch }));
  const checkpoint = await ofThisLog(connection.db, found, log);
  let after = checkpoint.position;
  yield { position: after, events: 0, setAside: [], ms: 0 };

  const left = new AbortController();
  const ended = AbortSignal.any([signal, left.signal]);
  const follow = (reached: (offset: Offset) => void) =>
    log.follow({ afterOffset: after, subjects: [] }, { signal: ended, reached });
  try {
    yield* overlapping(batches(follow, limits, ended), async (batch) => {
      const startedAt = performance.now();
      const start = { workspace, after, epoch: log.epoch, projection, log };
      const { result, committed } = await connection
        .transaction((tx) => applyBatch(tx, views, batch, start))
        .catch(async (error: unknown) => {
          if (!isDataError(error)) throw error;
          const result = await applyApart(connection, views, batch, start);
          return { result, committed: Promise.resolve() };
        });
      after = result.position;
      return {
        committed: committed.then(() => {
          connection.wrote(result.events);
          return { ...result, ms: performance.now() - startedAt };
        }),
      };
    });
  } finally {
    left.abort();
  }
}

/**
 * Begins the next batch as soon as the commit of the last one is on its way, so that Postgres is not idle while this process
 * computes. Yields what was committed, in order and without delay. Had a commit failed, the next batch would find the
 * checkpoint of the one before.
 */
async function* overlapping<In, Out>(
  items: AsyncGenerator<In, void>,
  begin: (one: In) => Promise<{ readonly committed: Promise<Out> }>,
): AsyncGenerator<Out, void> {
  let last: Promise<Out> | undefined;
  let next = items.next();
  for (;;) {
    const committed = await Promise.race([next.then(() => undefined), ...(last === undefined ? [] : [last])]);
    if (committed !== undefined) {
      last = undefined;
      yield committed;
      continue;
    }
    const { done, value } = await next;
    if (done === true) break;
    const started = begin(value);
    started.catch(() => {}); // if the last one failed, this one has to
    if (last !== undefined) yield await last;
    last = (await started).committed;
    last.catch(() => {});
    next = items.next();
    next.catch(() => {}); // reported when its turn comes
  }
  if (last !== undefined) yield await last;
}
