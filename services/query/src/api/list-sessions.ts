import { type ListSessionsResponse, Session } from "@tapedeck/proto/tapedeck/v1/lists";
import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import { readConsistently } from "../db/read.ts";
import type { SessionRow } from "../db/schema.ts";
import { timestampOf } from "../db/timestamp.ts";
import { builtIn } from "./artifacts.ts";
import { causeOf } from "./cause-of.ts";
import { allOf, anyOf, between, hasLabels, ofSource, type SqlCondition } from "./conditions.ts";
import type { ApiDeps } from "./deps.ts";
import { openGaps } from "./open-gaps.ts";
import { listPage, pageOf } from "./page.ts";
import { notProjected, reachAt, reachMinimum } from "./reach.ts";

/** Newest first. */
export async function listSessions(deps: ApiDeps, request: ListRequest): Promise<ListSessionsResponse> {
  const page = pageOf(request);
  const conditions = [
    ...ofSource(request),
    anyOf(sql`t.session`, request.sessions),
    ...between(sql`t.started_at`, request),
    hasLabels(sql`t.labels`, request),
    sql`t.start_position < ${page.before}`,
  ];
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  return readConsistently(deps.database(), deps.workspace, async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const matching = [...conditions, await builtIn(tx, sql`t.session`, request, at)];
    const { rows } = await (at === undefined ? now(matching, page.limit) : then(matching, page.limit, at)).execute(tx);
    const { epoch } = checkpoint;
    const itemOf = (row: SessionRow): Session => ({
      session: row.session,
      source: row.source,
      labels: { ...row.labels },
      started_at: timestampOf(row.started_at, row.started_ns),
      ended_at: timestampOf(row.ended_at, row.ended_ns),
      end_reason: row.end_reason,
      start_position: formatPosition({ epoch, offset: row.start_position }),
      end_position: formatPosition({ epoch, offset: row.end_position ?? row.last_position }),
      upstream_version: row.upstream_version,
      gaps: row.gaps,
      ended: row.end_position !== null,
      exit_code: row.exit_code ?? undefined,
      command_line: row.command_line,
      cause: row.end_position === null ? undefined : causeOf(row),
    });
    return {
      ...listPage(rows, page, { positionOf: (row) => row.start_position, itemOf, codec: Session }),
      position: formatPosition({ epoch, offset: at ?? checkpoint.position }),
    };
  });
}

function now(conditions: readonly (SqlCondition | undefined)[], limit: number) {
  return sql<SessionRow>`
    select t.* from sessions t where ${allOf(conditions)} order by t.start_position desc limit ${limit + 1}`;
}

/** The sessions as they stood. A session may have ended or been resumed since: a row has the last end and its cause. */
function then(conditions: readonly (SqlCondition | undefined)[], limit: number, at: Offset) {
  return sql<SessionRow>`
    select t.*, coalesce(last.position, t.start_position) as last_position, greatest(0, lost.gaps)::int as gaps,
      ended.position as end_position, case when ended.time_source <> 'interval' then ended.occurred_at end as ended_at,
      case when ended.time_source <> 'interval' then ended.occurred_ns else 0 end as ended_ns,
      coalesce(ended.detail ->> 'reason', '') as end_reason,
      coalesce((ended.detail ->> 'exit_code')::int, case when ended.detail #>> '{command_run,wrapper}' is distinct from 'true'
        then (ended.detail #>> '{command_run,exit_code}')::int end) as exit_code,
      coalesce(ended.detail #>> '{command_run,command_line}', '') as command_line,
      case when ended.position = t.end_position then t.reason else '' end as reason
    from sessions t
    left join lateral (
      select max(position) as position from events where session = t.session and position <= ${at}) as last on true
    left join lateral (
      select ${openGaps} as gaps from events where session = t.session and channel = 'tapedeck'
        and position <= ${at}) as lost on true
    left join lateral (
      select * from events where session = t.session and channel = 'tapedeck' and position <= ${at}
        and kind in ('session.started', 'upstream.restored', 'session.ended', 'session.lost')
      order by position desc limit 1) as ended on ended.kind in ('session.ended', 'session.lost')
    where ${allOf([...conditions, sql`t.start_position <= ${at}`])}
    order by t.start_position desc limit ${limit + 1}`;
}
