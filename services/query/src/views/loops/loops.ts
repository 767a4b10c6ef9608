import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import type { OperationRow } from "../../db/schema.ts";
import { table, upsert } from "../../db/table.ts";
import { operations } from "../operations/operations.ts";
import { endsSession, stepOf } from "../operations/pairing.ts";
import type { EndedOperation, LoopWaits, View } from "../view.ts";
import { finishedLoop, type LoopKey, loopName } from "./finished-loop.ts";
import { applyLabels } from "./loop-labels.ts";
import type { Wait } from "./timeline.ts";

const finishedLoops = table("finished_loops", ["id"]);

/** Each loop that is over, in one row: what it waited for, and what failed first. And the labels of loops, running or over. */
export const loops: View = {
  name: "loops",
  version: 2,
  sessionTables: ["finished_loops", "session_labels", "loop_labels"],
  after: [operations],
  async apply(tx, batch, { ended, waited }) {
    const all = await applyFinished(tx, batch);
    waited.push(...waitsAtEnd(ended, all));
    await applyLabels(tx, batch, begunIn(batch));
  },
};

/** The operations of a loop, by the loop's name. */
type LoopOperations = ReadonlyMap<string, readonly OperationRow[]>;

async function applyFinished(tx: Tx, batch: readonly RecordedEvent[]): Promise<LoopOperations> {
  const touched = loopsIn(batch);
  const abandoned = batch.filter(({ event }) => endsSession(event)).map(({ event }) => event.session);
  return finishLoops(tx, touched, abandoned);
}

/** Writes the rows of these loops, as far as they are over. Returns the operations of those that are. */
export async function finishLoops(
  tx: Tx,
  touched: readonly LoopKey[],
  abandoned: readonly string[],
): Promise<LoopOperations> {
  if (touched.length === 0 && abandoned.length === 0) return new Map();
  const rows = await operationsOf(tx, touched, abandoned);
  const next = new Map(rows.filter(({ is_next }) => is_next).map((row) => [loopName(row), row]));
  const own = Map.groupBy(
    rows.filter(({ is_next }) => !is_next),
    loopName,
  );
  const finished = [...own.values()].flatMap((rows) => {
    const [{ session, runner, loop } = { session: "", runner: 0, loop: 0 }] = rows;
    return finishedLoop(rows, next.get(loopName({ session, runner, loop: loop + 1 }))) ?? [];
  });
  await upsert(tx, finishedLoops, finished);
  return own;
}

/** The waits of the loops that have just ended, by what was known then: what comes later counts in no sum. */
function waitsAtEnd(ended: readonly EndedOperation[], all: LoopOperations): readonly LoopWaits[] {
  return ended.flatMap((end) => {
    const { row: loop } = end;
    if (loop.kind !== "loop" || loop.injected || loop.end_position === null) return [];
    const end_position = loop.end_position;
    const before = (all.get(loopName(loop)) ?? [])
      .filter(({ kind, start_position }) => kind !== "loop" && start_position <= end_position)
      .map((row) => ((row.end_position ?? 0) <= end_position ? row : running(row)));
    const waits = finishedLoop([loop, ...before], undefined)?.waits as readonly Wait[] | undefined;
    const sums = new Map<string, number>();
    for (const { phase, from_ms, to_ms } of waits ?? []) sums.set(phase, (sums.get(phase) ?? 0) + to_ms - from_ms);
    return sums.size === 0 ? [] : [{ ...end, waits: sums }];
  });
}

function running(row: OperationRow): OperationRow {
  return { ...row, ended_at: null, ended_ns: 0, duration_ms: null, outcome: null, end_position: null };
}

/** The loops that begin in the batch. */
function begunIn(batch: readonly RecordedEvent[]): readonly LoopKey[] {
  return batch.flatMap((recorded) => {
    const step = stepOf(recorded);
    return step?.does === "start" && step.pairing.kind === "loop" && !step.pairing.injected ? [step.pairing] : [];
  });
}

/** The loops that an event of the batch concerns, and for a loop that begins the one before. */
function loopsIn(batch: readonly RecordedEvent[]): readonly LoopKey[] {
  const touched = new Map<string, LoopKey>();
  const add = (key: LoopKey) => touched.set(loopName(key), key);
  for (const recorded of batch) {
    const step = stepOf(recorded);
    if (step === undefined || step.pairing.injected || step.pairing.loop === 0) continue;
    const { session, runner, loop, kind } = step.pairing;
    add({ session, runner, loop });
    if (kind === "loop" && step.does === "start") add({ session, runner, loop: loop - 1 });
  }
  return [...touched.values()];
}

type FoundOperation = OperationRow & {
  /** It is the loop after one that was asked for. */
  readonly is_next: boolean;
};

/**
 * The operations of loops that are over, and the loops after them. `abandoned`: sessions that ended, and with them the
 * loops that ran.
 */
async function operationsOf(
  tx: Tx,
  touched: readonly LoopKey[],
  abandoned: readonly string[],
): Promise<readonly FoundOperation[]> {
  const column = (name: keyof LoopKey) => touched.map((key) => key[name]);
  const { rows } = await sql<FoundOperation>`${plannedOnce}
    with requested as (
      select given.session, given.runner, given.loop
      from unnest(${column("session")}::text[], ${column("runner")}::int[], ${column("loop")}::int[])
        as given (session, runner, loop)
      cross join lateral (
        select from operations o
        where o.session = given.session and o.runner = given.runner and o.loop = given.loop
          and o.kind = 'loop' and not o.injected and o.outcome is not null offset 0) as finished
      union
      select own.* from unnest(${abandoned}::text[]) as ended (session)
      cross join lateral (
        select o.session, o.runner, o.loop from operations o
        where o.session = ended.session and o.kind = 'loop' and not o.injected and o.outcome = 'unknown' offset 0) as own)
    select o.* from requested r
    cross join lateral (
      select o.*, false as is_next from operations o
      where o.session = r.session and o.runner = r.runner and o.loop = r.loop offset 0) as o
    union all
    select o.* from requested r
    cross join lateral (
      select o.*, true from operations o
      where o.session = r.session and o.runner = r.runner and o.loop = r.loop::bigint + 1
        and o.kind = 'loop' and not o.injected offset 0) as o
    -- Of two that happened at the same time the first one counts, whatever the plan is.
    order by start_position, id`.execute(tx);
  return rows;
}
