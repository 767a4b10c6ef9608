import type { Recorded } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import type { CheckpointRow } from "../db/schema.ts";
import type { View } from "../views/view.ts";
import type { Batch } from "./batches.ts";
import { lockCheckpoint, moveCheckpoint } from "./checkpoint.ts";

export type Applied = {
  /** The checkpoint as it stands now. */
  readonly position: number;
  readonly events: number;
};

/** The tables are not those that this batch goes on from: they were swapped or put back meanwhile. */
export class CheckpointMovedError extends Error {
  override readonly name = "CheckpointMovedError";
}

/** Where the batch goes on from: of this log and projection, nothing between `after` and its first event. */
export type Place = { readonly after: number; readonly epoch: string; readonly projection: string };

/**
 * Applies what of the batch is new and moves the checkpoint, in the transaction given.
 * @throws CheckpointMovedError
 */
export async function applyBatch(tx: Tx, views: readonly View[], batch: Batch, place: Place): Promise<Applied> {
  const checkpoint = await lockCheckpoint(tx);
  if (checkpoint === undefined || checkpoint.position < place.after) {
    throw new CheckpointMovedError("the tables have gone back");
  }
  if (checkpoint.epoch !== place.epoch || checkpoint.projection !== place.projection) {
    throw new CheckpointMovedError("the tables are another projection's");
  }
  const fresh = batch.events.filter(({ seq }) => seq > checkpoint.position);
  const position = Math.max(checkpoint.position, batch.events.at(-1)?.seq ?? 0, batch.caughtUp ?? 0);
  if (fresh.length > 0) {
    const erased = erasures(fresh);
    await erase(tx, views, [...erased.keys()]);
    const kept = fresh.filter(({ event, seq }) => seq >= (erased.get(event.session) ?? 0));
    for (const view of views) {
      // What is known of a source stays; it must not matter whether the mark came in the same batch.
      const events = view.sessionTables.length === 0 ? fresh : kept;
      await view.apply(tx, events);
    }
  }
  if (position > checkpoint.position)
    await moveCheckpoint(tx, { ...checkpoint, position, ...appliedTo(checkpoint, fresh) });
  return { position, events: fresh.length };
}

/** The latest of all, as the clock of a log may be set back. */
function appliedTo({ recorded_until_ms }: CheckpointRow, fresh: readonly Recorded[]): Partial<CheckpointRow> {
  const last = fresh.at(-1);
  if (last === undefined) return {};
  const latest = fresh.reduce((ms, { recordedAt }) => Math.max(ms, recordedAt.getTime()), recorded_until_ms ?? 0);
  return { applied_position: last.seq, recorded_until_ms: latest };
}

/** Sessions that are erased in this batch, and where. */
function erasures(events: readonly Recorded[]): Map<string, number> {
  const marks = events.filter(({ event }) => event.kind === "session.erased");
  return new Map(marks.map(({ event, seq }) => [event.subject || event.session, seq]));
}

/** Removes every row of these sessions. */
export async function erase(tx: Tx, views: readonly View[], sessions: readonly string[]): Promise<void> {
  if (sessions.length === 0) return;
  for (const table of views.flatMap((view) => view.sessionTables)) {
    await sql`delete from ${sql.table(table)} where session = any(${sessions})`.execute(tx);
  }
}
