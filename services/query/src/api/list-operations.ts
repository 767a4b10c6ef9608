import type { ListOperationsResponse } from "@tapedeck/proto/tapedeck/v1/lists";
import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import { timestampOf } from "../db/moment.ts";
import { readConsistently } from "../db/read.ts";
import type { OperationRow } from "../db/schema.ts";
import { key } from "../db/text.ts";
import { allOf, anyOf, between, type Condition, ofSource } from "./conditions.ts";
import type { ApiDeps } from "./deps.ts";
import { cut, pageOf } from "./page.ts";
import { notProjected, reachAt, reachMinimum } from "./reach.ts";

/** Newest first. With `at`: the operations that had begun by then; those that ended later are listed as running. */
export async function listOperations(deps: ApiDeps, request: ListRequest): Promise<ListOperationsResponse> {
  const page = pageOf(request);
  const before = [
    ...ofSource(request),
    anyOf(sql`t.session`, request.sessions),
    anyOf(sql`t.kind`, request.kinds),
    subjects(request.subjects.map(key)),
    ...between(sql`coalesce(t.started_at, t.ended_at)`, request),
    sql`t.start_position < ${page.before}`,
  ];
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  const ended = at === undefined ? sql`t.outcome is not null` : sql`t.end_position <= ${at}`;
  const conditions = [
    ...before,
    request.outcomes.length === 0 ? undefined : sql`(${ended} and ${anyOf(sql`t.outcome`, request.outcomes)})`,
    at === undefined ? undefined : sql`t.start_position <= ${at}`,
  ];
  return readConsistently(deps.database(), async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const { rows } = await sql<OperationRow>`
      select t.* from operations t where ${allOf(conditions)}
      order by t.start_position desc limit ${page.limit + 1}`.execute(tx);
    const { epoch } = checkpoint;
    const listed = cut(rows, page, (row) => row.start_position);
    return {
      items: listed.rows.map((row) => operation(row, epoch, at ?? checkpoint.position)),
      next_page: listed.next_page,
      position: formatPosition({ epoch, offset: at ?? checkpoint.position }),
    };
  });
}

/** A command matches by its name and by its job's id, as in an event filter. */
function subjects(names: readonly string[]): Condition | undefined {
  const own = anyOf(sql`t.subject`, names);
  return own && sql`(${own} or ${anyOf(sql`t.instance`, names)})`;
}

function operation(row: OperationRow, epoch: string, at: Offset) {
  const isOver = row.end_position !== null && row.end_position <= at;
  return {
    id: row.id,
    source: row.source,
    session: row.session,
    runner: row.runner,
    loop: row.loop,
    kind: row.kind,
    subject: row.subject,
    started_at: timestampOf(row.started_at, row.started_ns),
    ended_at: isOver ? timestampOf(row.ended_at, row.ended_ns) : undefined,
    duration_ms: isOver && row.duration_ms !== null ? BigInt(row.duration_ms) : undefined,
    outcome: isOver ? (row.outcome ?? "") : "",
    error_code: isOver ? row.error_code : "",
    error: isOver ? row.error : "",
    cache_hit: row.cache_hit,
    start_position: formatPosition({ epoch, offset: row.start_position }),
    end_position: isOver ? formatPosition({ epoch, offset: row.end_position ?? logStart }) : "",
    platform: row.platform,
    instance: row.instance,
    exit_code: isOver && row.exit_code !== null ? row.exit_code : undefined,
  };
}
