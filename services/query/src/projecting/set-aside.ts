import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { sourceParts } from "@tapedeck/shared/source";
import { type Kysely, sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { StatementError } from "../db/pipeline.ts";
import type { RowOf, Schema } from "../db/schema.ts";
import { insert, table } from "../db/table.ts";
import { key, longText } from "../db/text.ts";
import { textOfDate } from "../db/timestamp.ts";

/*
 * An event that the tables can't take must stop neither the events after it nor other workspaces. It is set aside: it stays
 * in the log, no view has it, and these tables say so. A rebuild makes the tables anew and tries every event again.
 */

/** An event, and why it can't be applied. */
export type SetAsideEvent = { readonly recorded: RecordedEvent; readonly error: unknown };

/**
 * How many events of each source are listed from the first on, and how many up to the last. The first one of each session
 * is listed too, so that a source without listed events has no events set aside.
 */
export const listedAtEachEnd = 100;

/** A recorder may begin sessions without end. The first events of more sessions of a source are not listed. */
export const maxListedSessions = 1_000;

const setAsideEvents = table("set_aside_events", ["workspace", "position"]);

/** Records the events as set aside. They come in the order of the log, and none was recorded before. */
export async function recordSetAside(tx: Tx, refused: readonly SetAsideEvent[]): Promise<void> {
  const rows = refused.map(rowOf);
  await insert(tx, setAsideEvents, rows);
  const sources = [...Map.groupBy(rows, ({ source }) => source)].map(([source, own]) => ({ source, own }));
  await sql`
    insert into set_aside_sources as s (source, workspace, events, first_position, last_position, last_at)
    select source, min(workspace), count(*), min(position), max(position), max(set_aside_at)
    from set_aside_events
    where (workspace, position) in (
      select * from unnest(${rows.map(({ workspace }) => workspace)}::text[], ${rows.map(({ position }) => position)}::bigint[]))
    group by source
    on conflict (source) do update set events = s.events + excluded.events, last_position = excluded.last_position,
      last_at = excluded.last_at`.execute(tx);
  await sql`
    with ranked as (
      select source, position, row_number() over (partition by source order by position) as nth,
        row_number() over (partition by source, session order by position) as nth_of_session,
        count(*) over (partition by source) as listed
      from set_aside_events where source = any(${sources.map(({ source }) => source)}::text[])),
    gone as (
      delete from set_aside_events e using ranked r
      where e.source = r.source and e.position = r.position and r.nth > ${listedAtEachEnd} and r.nth <= r.listed - ${listedAtEachEnd}
        and (r.nth_of_session > 1 or r.nth > ${maxListedSessions})
      returning e.source, e.position)
    update set_aside_sources s set unlisted_first_position = least(s.unlisted_first_position, g.first),
      unlisted_last_position = greatest(s.unlisted_last_position, g.last)
    from (select source, min(position) as first, max(position) as last from gone group by source) g
    where s.source = g.source`.execute(tx);
}

/**
 * Removes what was set aside of sessions before they were erased. Where not all events of a source were listed, its number
 * may still count some of them, as long as another session has events there.
 */
export async function forgetSetAside(
  tx: Tx,
  erasures: readonly { readonly session: string; readonly mark?: Offset }[],
): Promise<void> {
  const sessions = erasures.map(({ session }) => session);
  const marks = erasures.map(({ mark }) => mark ?? null);
  await sql`
    with gone as (
      delete from set_aside_events e using unnest(${sessions}::text[], ${marks}::bigint[]) as erased (session, mark)
      where e.session = erased.session and (erased.mark is null or e.position < erased.mark)
      returning e.source, e.position),
    touched as (select source, count(*) as events from gone group by source),
    remaining as (
      select e.source, min(e.position) as first, max(e.position) as last from set_aside_events e
      where e.source in (select source from touched) and (e.source, e.position) not in (select source, position from gone)
      group by e.source),
    emptied as (
      delete from set_aside_sources s using touched t
      where s.source = t.source and t.source not in (select source from remaining))
    update set_aside_sources s set events = greatest(s.events - t.events, 1),
      first_position = least(r.first, s.unlisted_first_position), last_position = greatest(r.last, s.unlisted_last_position)
    from touched t join remaining r using (source) where s.source = t.source`.execute(tx);
}

function rowOf({ recorded, error }: SetAsideEvent): RowOf<"set_aside_events"> {
  const { event, offset, recordedAt } = recorded;
  return {
    position: offset,
    source: key(event.source),
    workspace: key(sourceParts(event.source as SourceName).workspace),
    session: key(event.session),
    kind: key(event.kind),
    error_code: key(codeOf(error)),
    error: longText(error instanceof Error ? error.message : String(error)),
    recorded_at: textOfDate(recordedAt),
    set_aside_at: textOfDate(new Date()),
  };
}

function codeOf(error: unknown): string {
  if (error instanceof StatementError) return error.code ?? "";
  return error instanceof Error ? error.name : "";
}

/** What was set aside of a source. */
export type SetAsideSource = RowOf<"set_aside_sources"> & {
  /** That of the log of its workspace. */
  readonly epoch: string;
  /** Why the last one that is listed was. */
  readonly error_code: string;
  readonly error: string;
};

/** The sources with events that were set aside, the last one first; of one workspace, or of all. At most `limit`. */
export async function readSetAside(
  db: Kysely<Schema>,
  { workspace, limit }: { readonly workspace?: string; readonly limit: number },
): Promise<readonly SetAsideSource[]> {
  const { rows } = await sql<SetAsideSource>`
    select s.*, w.epoch, coalesce(e.error_code, '') as error_code, coalesce(e.error, '') as error
    from set_aside_sources s join workspaces w using (workspace) left join lateral (
      select error_code, error from set_aside_events e where e.source = s.source order by position desc limit 1) e on true
    ${workspace === undefined ? sql`` : sql`where s.workspace = ${workspace}`}
    order by s.last_at desc, s.last_position desc limit ${limit}`.execute(db);
  return rows;
}
