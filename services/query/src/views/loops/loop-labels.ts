import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import type { SessionLabelsRow } from "../../db/schema.ts";
import { table, upsert } from "../../db/table.ts";
import { key, longText } from "../../db/text.ts";
import { storedTimestamp } from "../../db/timestamp.ts";
import type { LoopKey } from "./finished-loop.ts";

const sessionLabels = table("session_labels", ["session", "at", "ns", "position"]);

/** Writes the batch's labels, and those of each loop that they change. `begun`: loops that begin in the batch. */
export async function applyLabels(tx: Tx, batch: readonly RecordedEvent[], begun: readonly LoopKey[]): Promise<void> {
  const labelled = batch.flatMap((recorded) => labelsIn(recorded) ?? []);
  await upsert(tx, sessionLabels, labelled);
  const earliest = earliestOf(labelled);
  if (earliest.size === 0 && begun.length === 0) return;
  const column = (name: keyof LoopKey) => begun.map((loop) => loop[name]);
  // The event may be recorded after the loop that it is about, and after loops that follow it.
  await sql`${plannedOnce}
    with requested as (
      select o.id from unnest(${[...earliest.keys()]}::text[], ${[...earliest.values()]}::timestamptz[]) as given (session, at)
      cross join lateral (
        select id from operations own
        where own.session = given.session and own.started_at >= given.at and own.kind = 'loop' and not own.injected offset 0) as o
      union
      select o.id from unnest(${column("session")}::text[], ${column("runner")}::int[], ${column("loop")}::int[])
        as given (session, runner, loop)
      cross join lateral (
        select id from operations own
        where own.session = given.session and own.runner = given.runner and own.loop = given.loop
          and own.kind = 'loop' and not own.injected offset 0) as o
      where (select true from session_labels l where l.session = given.session limit 1))
    insert into loop_labels (source, session, runner, loop, labels)
    select distinct on (o.session, o.runner, o.loop) o.source, o.session, o.runner, o.loop, newest.labels
    from requested cross join lateral (select * from operations own where own.id = requested.id offset 0) as o
    cross join lateral (
      select l.labels from session_labels l
      where l.session = o.session and (l.at, l.ns) <= (o.started_at, o.started_ns)
      order by l.at desc, l.ns desc, l.position desc limit 1) as newest
    -- As in finished_loops, the first of two counts.
    order by o.session, o.runner, o.loop, o.start_position, o.id
    on conflict (session, runner, loop) do update set labels = excluded.labels`.execute(tx);
}

/** From when on the batch's labels hold, by session. */
export function earliestLabels(batch: readonly RecordedEvent[]): ReadonlyMap<string, string> {
  return earliestOf(batch.flatMap((recorded) => labelsIn(recorded) ?? []));
}

function earliestOf(labelled: readonly SessionLabelsRow[]): ReadonlyMap<string, string> {
  return new Map(labelled.toSorted((a, b) => (a.at < b.at ? 1 : -1)).map(({ session, at }) => [session, at]));
}

/** A label without a value is null. */
function labelsIn({ event, offset }: RecordedEvent): SessionLabelsRow | undefined {
  const { kind, detail, session, source, occurred_at } = event;
  if (kind !== "session.labelled" || detail?.$case !== "session_detail" || session === "") return undefined;
  const { at, ns } = storedTimestamp(occurred_at);
  if (at === null) return undefined;
  const entries = Object.entries(detail.value.labels);
  const labels = Object.fromEntries(entries.map(([name, value]) => [key(name), value === "" ? null : longText(value)]));
  return { source, session, at, ns, position: offset, labels };
}
