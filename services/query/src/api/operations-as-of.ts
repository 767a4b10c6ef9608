import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import type { OperationRow } from "../db/schema.ts";
import { causeColumnsOf, noCause } from "../views/causes/cause-columns.ts";
import { firstFailed } from "../views/loops/finished-loop.ts";
import { rowsAfter } from "../views/operations/rows.ts";
import { askLog } from "./reach.ts";

// An operation may end more than once: Skaffold reports a loop as failed each time that its sync is retried, and what was
// unknown when its recorder was lost may become known. Its row has the last end.

/** The end of a row is not the one that is known at the position: it came later. */
export function endedLater({ end_position }: OperationRow, at: Offset): boolean {
  return end_position !== null && end_position > at;
}

const readingMs = 5_000;

/**
 * The operations as they stood at a position, in the same order: one that ended later is running, or has the last end that it had
 * by then. That is made of its events, as the row was.
 */
export async function operationsAsOf(
  tx: Tx,
  log: LogReader,
  rows: readonly OperationRow[],
  at: Offset,
): Promise<readonly OperationRow[]> {
  const earlier = await earlierEnds(
    tx,
    log,
    rows.filter((row) => endedLater(row, at)).map(({ id }) => id),
    at,
  );
  return await Promise.all(
    rows.map(async (row) => {
      if (!endedLater(row, at)) return row;
      const before = earlier.get(row.id);
      if (before === undefined || before.outcome === null) return running(row);
      const { cause, reason, cause_group, cause_file, cause_line, advice } = row;
      const known =
        row.outcome === before.outcome ? { cause, reason, cause_group, cause_file, cause_line, advice } : {};
      return { ...before, ...known, ...(row.kind === "loop" && (await causeOfLoop(tx, before, at))) };
    }),
  );
}

function running(row: OperationRow): OperationRow {
  const end = { ended_at: null, ended_ns: 0, duration_ms: null, end_position: null, exit_code: null };
  return { ...row, ...end, ...noCause, outcome: null, error_code: "", error: "" };
}

/** The operations that had ended by the position, by their ids. */
async function earlierEnds(
  tx: Tx,
  log: LogReader,
  ids: readonly string[],
  at: Offset,
): Promise<ReadonlyMap<string, OperationRow>> {
  if (ids.length === 0) return new Map();
  // Pods and apps run for so long that their events are not searched for: only a lost session ends them early.
  const { rows } = await sql<{ start: Offset; position: Offset }>`
    select o.start_position as start, e.position
    from unnest(${[...ids]}::text[]) as requested (id) join operations o using (id)
    cross join lateral (
      select position from events where session = o.session and channel = 'tapedeck'
        and kind in ('session.ended', 'session.lost') and position > o.start_position and position <= ${at}
      union all
      select position from events where o.kind not in ('pod', 'app') and session = o.session
        and position > o.start_position and position <= ${at}
        and coalesce(operation_kind, split_part(kind, '.', 1)) = o.kind and coalesce(operation_subject, subject) = o.subject
        and coalesce(runner, 0) = o.runner and coalesce(loop, 0) = o.loop) as e`.execute(tx);
  if (rows.length === 0) return new Map();
  const offsets = [...new Set(rows.flatMap(({ start, position }) => [start, position]))].toSorted((a, b) => a - b);
  const read = () => Array.fromAsync(log.read(offsets, timeoutSignal(readingMs))) as Promise<RecordedEvent[]>;
  const known = rowsAfter([], await askLog(read));
  return new Map(known.map((row) => [row.id, row]));
}

/** The cause of the step that had failed first in the loop by then. */
async function causeOfLoop(tx: Tx, { session, runner, loop }: OperationRow, at: Offset) {
  const { rows } = await sql<OperationRow>`
    select * from operations where session = ${session} and runner = ${runner} and loop = ${loop} and kind <> 'loop'
      and not injected and start_position <= ${at} and end_position <= ${at}`.execute(tx);
  const first = firstFailed(rows);
  return first === undefined ? {} : causeColumnsOf(first);
}
