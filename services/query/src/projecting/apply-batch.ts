import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { laterOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import { CheckpointMovedError, lockCheckpoint, moveCheckpoint } from "../db/checkpoint.ts";
import type { Tx } from "../db/database.ts";
import { StatementError } from "../db/pipeline.ts";
import { noSwapUntilCommit } from "../db/read.ts";
import { columnTypes } from "../db/schema.generated.ts";
import type { CheckpointRow } from "../db/schema.ts";
import { forgetTotals } from "../views/totals/kept-totals.ts";
import { type EarlierEvents, emptyContext, type View } from "../views/view.ts";
import type { Batch } from "./batches.ts";
import { isDataError } from "./data-error.ts";
import { expiredIn, keepCounts } from "./forget/expired.ts";
import { forgetSetAside, recordSetAside, type SetAsideEvent } from "./set-aside.ts";

export type Applied = {
  /** The new checkpoint. */
  readonly position: Offset;
  readonly events: number;
  /** Events that could not be applied; see set-aside.ts. */
  readonly setAside: readonly SetAsideEvent[];
};

/** The checkpoint that a batch continues from. No event of the log is between `after` and the batch's first event. */
export type BatchStart = {
  readonly workspace: string;
  readonly after: Offset;
  readonly epoch: string;
  readonly projection: string;
  /** Has the events before it. */
  readonly log: EarlierEvents;
};

/**
 * Applies the new events of the batch, records the ones that can't be applied, and moves the checkpoint, in the given
 * transaction. `recorded` is called between the two: what fails before it does not fail because of `batch.events`.
 * @throws CheckpointMovedError
 */
export async function applyBatch(
  tx: Tx,
  views: readonly View[],
  batch: Batch,
  start: BatchStart,
  recorded: () => void = () => {},
): Promise<Applied> {
  // Otherwise the checkpoint could be that of tables which a rebuild has just replaced, and the rows go into the new ones.
  const [, checkpoint] = await Promise.all([noSwapUntilCommit(tx), lockCheckpoint(tx, start.workspace)]);
  if (checkpoint === undefined || checkpoint.position < start.after) {
    throw new CheckpointMovedError("the tables are at an earlier position");
  }
  if (checkpoint.epoch !== start.epoch || checkpoint.projection !== start.projection) {
    throw new CheckpointMovedError("the tables belong to another projection");
  }
  const fresh = batch.events.filter(({ offset }) => offset > checkpoint.position);
  const refused = (batch.refused ?? []).filter(({ recorded }) => recorded.offset > checkpoint.position);
  const ends = [batch.events.at(-1)?.offset, batch.reached, refused.at(-1)?.recorded.offset, checkpoint.position];
  const position = ends.reduce<Offset>((last, end) => laterOf(last, end ?? logStart), logStart);
  if (refused.length > 0) {
    await recordSetAside(tx, refused);
    // What a mark of an erased session erases must go even where the mark itself can't be applied.
    for (const [session, mark] of erasures(refused.map(({ recorded }) => recorded)))
      await tryErase(tx, views, { session, mark });
    await checkConstraints(tx);
  }
  recorded();
  if (fresh.length > 0) {
    const erased = erasures(fresh);
    const marks = [...erased].map(([session, mark]) => ({ session, mark }));
    await keepCounts(tx, expiredIn(fresh));
    await erase(tx, views, marks);
    const sources = erasedSources(fresh);
    await eraseSources(tx, [...sources.keys()]);
    const known =
      sources.size === 0 ? fresh : fresh.filter(({ event, offset }) => offset > (sources.get(event.source) ?? 0));
    const remaining =
      erased.size === 0 ? known : known.filter(({ event, offset }) => offset >= (erased.get(event.session) ?? 0));
    await applyViews(tx, views, start.log, (view) => {
      if (view.countsErased) return fresh;
      // The known facts about a source stay, whether or not the mark comes in the same batch.
      return view.sessionTables.length === 0 ? known : remaining;
    });
  }
  if (position > checkpoint.position)
    await moveCheckpoint(tx, { ...checkpoint, position, ...appliedTo(checkpoint, fresh) });
  await checkConstraints(tx);
  return { position, events: fresh.length, setAside: refused };
}

/** Views write different tables, so none waits for another: while Postgres writes for one, the next is computed. */
async function applyViews(
  tx: Tx,
  views: readonly View[],
  log: EarlierEvents,
  eventsFor: (view: View) => readonly RecordedEvent[],
): Promise<void> {
  const context = emptyContext(log);
  const applied = new Map<View, Promise<void>>();
  for (const view of views) {
    const before = view.after?.map((one) => applied.get(one));
    const apply = () => view.apply(tx, eventsFor(view), context);
    applied.set(view, before === undefined ? apply() : Promise.all(before).then(apply));
  }
  // All of them end before the transaction does: what a view sent after a rollback would be committed by itself.
  const ends = await Promise.allSettled(applied.values());
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

/** Keeps the latest time at which this log stored an event, because the clock of a log may be set back. */
function appliedTo({ recorded_until_ms }: CheckpointRow, fresh: readonly RecordedEvent[]): Partial<CheckpointRow> {
  const last = fresh.at(-1);
  if (last === undefined) return {};
  const latest = fresh.reduce((ms, { recordedAt }) => Math.max(ms, recordedAt.getTime()), recorded_until_ms ?? 0);
  return { applied_position: last.offset, recorded_until_ms: latest };
}

/** The sessions that this batch erases, with the positions of the marks. */
function erasures(events: readonly RecordedEvent[]): Map<string, Offset> {
  const marks = events.filter(({ event }) => event.kind === "session.erased");
  return new Map(marks.map(({ event, offset }) => [event.subject || event.session, offset]));
}

/** The sources of which this batch says that nothing is left, with the positions of these events. */
function erasedSources(events: readonly RecordedEvent[]): Map<string, Offset> {
  const marks = events.filter(({ event }) => event.kind === "source.erased");
  return new Map(marks.map(({ event, offset }) => [event.source, offset]));
}

/** The tables that have rows of sources. */
const sourceTables = Object.entries(columnTypes).flatMap(([table, columns]) => ("source" in columns ? [table] : []));

/** Removes every row of these sources. */
async function eraseSources(tx: Tx, sources: readonly string[]): Promise<void> {
  if (sources.length === 0) return;
  await sql`
    delete from event_positions where event_group in (select id from event_groups where source = any(${sources}))`.execute(
    tx,
  );
  for (const table of sourceTables) {
    await sql`delete from ${sql.table(table)} where source = any(${sources})`.execute(tx);
  }
  await forgetTotals(tx, sources);
  await checkConstraints(tx);
}

/** A session that is erased, and the position of the event that says so; undefined: no event does. */
type Erasure = { readonly session: string; readonly mark?: Offset };

/** Removes every row of these sessions. What was set aside from the mark on stays listed: the mark itself may be. */
export async function erase(tx: Tx, views: readonly View[], erasures: readonly Erasure[]): Promise<void> {
  if (erasures.length === 0) return;
  const sessions = erasures.map(({ session }) => session);
  for (const table of views.flatMap((view) => view.sessionTables)) {
    await sql`delete from ${sql.table(table)} where session = any(${sessions})`.execute(tx);
  }
  await forgetSetAside(tx, erasures);
  await checkConstraints(tx);
}

/**
 * Checks now what somebody's deferred constraints would check at the commit. A refusal there would be one of the whole
 * batch, with no event to set aside.
 */
async function checkConstraints(tx: Tx): Promise<void> {
  await sql`set constraints all immediate`.execute(tx);
}

/** Leaves the rows of the session where they can't be deleted, as while somebody else's foreign key names one of them. */
async function tryErase(tx: Tx, views: readonly View[], erasure: Erasure): Promise<void> {
  await sql`savepoint erasure`.execute(tx);
  try {
    await erase(tx, views, [erasure]);
  } catch (error) {
    if (!isDataError(new StatementError(error as Error))) throw error;
    await sql`rollback to savepoint erasure`.execute(tx);
  }
}
