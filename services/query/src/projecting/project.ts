import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { Kysely } from "kysely";
import type { Schema } from "../db/schema.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import { type Applied, applyBatch } from "./apply-batch.ts";
import { type BatchLimits, batches, defaultLimits } from "./batches.ts";
import { beginCheckpoint, ofThisLog, readCheckpoint } from "./checkpoint.ts";

/** The position of the tables; `ms` is the duration of the last batch, 0 at first. */
export type Projected = Applied & { readonly ms: number };

export type Project = {
  /** One connection, which holds the lock of its tables (see withTables). */
  readonly connection: Kysely<Schema>;
  readonly log: LogReader;
  readonly views: readonly View[];
  readonly limits?: BatchLimits;
  readonly signal: AbortSignal;
};

/**
 * Follows the log into the tables until the signal. Yields the position of the tables at first and after every commit.
 * Each batch is one transaction with the checkpoint, so an event counts once, however often this is started, killed and
 * started again. Throws when the database or the log is away; the caller starts it again.
 * @throws ForeignCheckpointError when the tables do not belong to this log
 * @throws CheckpointMovedError when another process changes them meanwhile
 */
export async function* project(options: Project): AsyncGenerator<Projected, void> {
  const { connection, log, views, limits = defaultLimits, signal } = options;
  const projection = projectionVersion(views);
  const found = (await readCheckpoint(connection)) ?? (await beginCheckpoint(connection, projection, log.epoch));
  const checkpoint = await ofThisLog(connection, found, log);
  let after = checkpoint.position;
  yield { position: after, events: 0, ms: 0 };

  const left = new AbortController();
  const ended = AbortSignal.any([signal, left.signal]);
  const follow = (reached: (offset: Offset) => void) =>
    log.follow({ afterOffset: after, subjects: [] }, { signal: ended, reached });
  try {
    for await (const batch of batches(follow, limits, ended)) {
      const start = { after, epoch: log.epoch, projection };
      const startedAt = performance.now();
      const applied = await connection.transaction().execute((tx) => applyBatch(tx, views, batch, start));
      after = applied.position;
      yield { ...applied, ms: performance.now() - startedAt };
    }
  } finally {
    left.abort();
  }
}
