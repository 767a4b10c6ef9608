import { type ListSourcesResponse, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { beyondAll, type Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { readConsistently } from "../db/read.ts";
import type { SourceRow } from "../db/schema.ts";
import { timestampOf } from "../db/timestamp.ts";
import { builtIn } from "./artifacts.ts";
import { allOf, anyOf, hasLabels, ofSource, type SqlCondition } from "./conditions.ts";
import type { ApiDeps } from "./deps.ts";
import type { SourceLastSeen } from "./last-seen-sources.ts";
import { openGaps } from "./open-gaps.ts";
import { listPage, pageOf } from "./page.ts";
import { notProjected, reachAt, reachMinimum } from "./reach.ts";
import { sourceAt } from "./source-at.ts";
import { currentSession } from "./state/current-session.ts";

type ListedSource = SourceRow & {
  readonly current_session: string | null;
  readonly gaps: number;
  readonly lag_ms: number | null;
  /** How far the clock of the newest events is ahead, in ms. */
  readonly clock_offset_ms?: number | null;
};

/** Clocks that agree better are taken to be right: events take a while to be recorded. */
const clockToleranceMs = 60_000;
/** A single event may have been recorded late. */
const clockEvents = 5;

/** Newest first. */
export async function listSources(deps: ApiDeps, request: ListRequest): Promise<ListSourcesResponse> {
  const page = pageOf(request);
  const where = ofSource(request);
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  return readConsistently(deps.database(), deps.workspace, async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const conditions = [...where, await hasSession(tx, request, at), sql`t.first_position < ${page.before}`];
    const { rows } = await (at === undefined
      ? now(conditions, page.limit, checkpoint.position)
      : then(conditions, page.limit, at)
    ).execute(tx);
    const { epoch } = checkpoint;
    const itemOf = (row: ListedSource): Source => {
      const lastSeen = at === undefined && row.status === "recording" ? deps.lastSeen?.of(row.source) : undefined;
      return {
        source: row.source,
        workspace: row.workspace,
        developer: row.developer,
        project: row.project,
        upstream: row.upstream,
        status: row.status,
        current_session: row.current_session ?? "",
        last_event_at: timestampOf(row.last_event_at, row.last_event_ns),
        last_position: formatPosition({ epoch, offset: row.last_position }),
        developer_name: row.developer_name,
        project_name: row.project_name,
        first_position: formatPosition({ epoch, offset: row.first_position }),
        address: row.address,
        gaps: row.gaps,
        not_heard_since: timestampOf(row.status === "lost" ? row.not_heard_since : null, 0) ?? lastSeen?.notHeardSince,
        lag_ms: ageOf(row, lastSeen, at),
        heard_at: { ...lastSeen?.heardAt },
        clock_offset_ms: clockOffsetOf(row),
      };
    };
    return {
      ...listPage(rows, page, { positionOf: (row) => row.first_position, itemOf, codec: Source }),
      position: formatPosition({ epoch, offset: at ?? checkpoint.position }),
    };
  });
}

/** The source has a session that matches all of the request that is about sessions. */
async function hasSession(tx: Tx, request: ListRequest, at: Offset | undefined): Promise<SqlCondition | undefined> {
  const conditions = [
    anyOf(sql`s.session`, request.sessions),
    hasLabels(sql`s.labels`, request),
    await builtIn(tx, sql`s.session`, request, at),
  ];
  if (conditions.every((condition) => condition === undefined)) return undefined;
  const began = sql`s.start_position <= ${at ?? beyondAll}`;
  return sql`exists (select from sessions s where ${allOf([sql`s.source = t.source`, ...conditions, began])})`;
}

/** Undefined where the clocks agree, and for what was imported long after it happened. */
function clockOffsetOf({ status, clock_offset_ms: ms }: ListedSource): bigint | undefined {
  if (status !== "recording" || ms === null || ms === undefined || Math.abs(ms) <= clockToleranceMs) return undefined;
  return BigInt(Math.round(ms));
}

/** Age of what is known of the source now, or how late its last event up to `at` was recorded, in ms. */
function ageOf(
  { status, not_heard_since, lag_ms }: ListedSource,
  lastSeen: SourceLastSeen | undefined,
  at: Offset | undefined,
): bigint | undefined {
  if (lastSeen !== undefined) return BigInt(lastSeen.ageMs);
  if (at === undefined && status === "lost" && not_heard_since !== null)
    return BigInt(Math.max(0, Date.now() - Date.parse(not_heard_since)));
  return lag_ms === null ? undefined : BigInt(lag_ms);
}

function now(conditions: readonly (SqlCondition | undefined)[], limit: number, checkpoint: Offset) {
  return sql<ListedSource>`
    select t.*, ${currentSession(sql`t.source`, checkpoint)} as current_session, (t.gaps + coalesce(lost.gaps, 0))::int as gaps,
      ${lagMs} as lag_ms, clock.offset_ms as clock_offset_ms
    from sources t
    left join lateral (${lastEvent(checkpoint)}) as last on true
    left join lateral (${clockOffset(checkpoint)}) as clock on true
    left join lateral (select sum(gaps) as gaps from sessions where source = t.source) as lost on true
    where ${allOf(conditions)}
    order by t.first_position desc limit ${limit + 1}`;
}

/**
 * The sources as they stood. Columns that change are read from the events. The last event is the last one that has a row:
 * text and mirrors have none.
 */
function then(conditions: readonly (SqlCondition | undefined)[], limit: number, at: Offset) {
  return sql<ListedSource>`
    select t.*, ${currentSession(sql`t.source`, at)} as current_session,
      greatest(0, coalesce(lost.gaps, 0))::int as gaps, stood.status, stood.not_heard_since,
      last.position as last_position, last.occurred_at as last_event_at, last.occurred_ns as last_event_ns,
      ${lagMs} as lag_ms
    from sources t
    left join lateral (
      select ${openGaps} as gaps from events where source = t.source and channel = 'tapedeck'
        and position <= ${at}) as lost on true
    left join lateral (${sourceAt(sql`t.source`, at)}) as stood on true
    left join lateral (${lastEvent(at)}) as last on true
    where ${allOf([...conditions, sql`t.first_position <= ${at}`])}
    order by t.first_position desc limit ${limit + 1}`;
}

/** The newest event of source `t` that has a row. */
function lastEvent(at: Offset): SqlCondition {
  return sql`
    select position, coalesce(occurred_at, observed_at, recorded_at) as occurred_at, occurred_ns, recorded_at from events
    where source = t.source and position <= ${at}
    order by position desc limit 1`;
}

/** The least delay of the newest events, negative where it was positive: an event is never observed after it was recorded. */
function clockOffset(at: Offset): SqlCondition {
  return sql`
    select (extract(epoch from max(greatest(newest.observed_at, newest.upstream_at) - newest.recorded_at)) * 1000)::float8
      as offset_ms
    from (
      select recorded_at, observed_at, case when occurred_at > observed_at then occurred_at end as upstream_at
      from events where source = t.source and position <= ${at}
      order by position desc limit ${clockEvents}) as newest`;
}

const lagMs = sql`(extract(epoch from last.recorded_at - last.occurred_at) * 1000)::bigint`;
