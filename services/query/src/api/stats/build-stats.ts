import type { BuildStatsRequest, BuildStatsResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { sql } from "kysely";
import { storedTimestamp } from "../../db/timestamp.ts";
import type { SqlCondition } from "../conditions.ts";
import type { ApiDeps } from "../deps.ts";
import { buildsByMonth, canCountByMonth } from "./builds-by-month.ts";
import { type Counted, countGrouped, loopOf, percentile } from "./grouped.ts";

const ran = sql`ran`;

const builds = {
  from: sql`(select *, outcome in ('succeeded', 'failed') and not cache_hit as ran
    from build_times where not injected)`,
  at: sql`t.started_at`,
  loop: loopOf(),
  columns: { artifact: sql`t.artifact` },
  figures: {
    count: sql`count(*) filter (where ran)`,
    failed: sql`count(*) filter (where ran and outcome = 'failed')`,
    p50_ms: percentile(0.5, sql`duration_ms`, ran),
    p90_ms: percentile(0.9, sql`duration_ms`, ran),
    p99_ms: percentile(0.99, sql`duration_ms`, ran),
    cached: sql`count(*) filter (where cache_hit)`,
    canceled: sql`count(*) filter (where outcome = 'canceled')`,
    unknown: sql`count(*) filter (where outcome = 'unknown')`,
    untimed: sql`count(*) filter (where ran and duration_ms is null)`,
  },
  also: daysBetween,
} satisfies Counted<string>;

/** The same range in days: the index of builds is by day. */
export function daysBetween({ from, to }: BuildStatsRequest): (SqlCondition | undefined)[] {
  const day = sql`(t.started_at at time zone 'UTC')::date`;
  const of = (timestamp: BuildStatsRequest["from"]) =>
    timestamp && sql`(${storedTimestamp(timestamp).at}::timestamptz at time zone 'UTC')::date`;
  const [first, last] = [of(from), of(to)];
  return [first && sql`${day} >= ${first}`, last && sql`${day} <= ${last}`];
}

export async function buildStats(deps: ApiDeps, request: BuildStatsRequest): Promise<BuildStatsResponse> {
  const isByMonth = await canCountByMonth(deps, request);
  const { items, position } = await countGrouped(deps, request, isByMonth ? buildsByMonth(request) : builds);
  return {
    items: items.map(({ group, figures }) => {
      const [count, failed] = [figures.count ?? 0, figures.failed ?? 0];
      return {
        group,
        count: BigInt(count),
        failed: BigInt(failed),
        failure_rate: count === 0 ? 0 : failed / count,
        p50_ms: figures.p50_ms ?? undefined,
        p90_ms: figures.p90_ms ?? undefined,
        p99_ms: figures.p99_ms ?? undefined,
        cached: BigInt(figures.cached ?? 0),
        canceled: BigInt(figures.canceled ?? 0),
        unknown: BigInt(figures.unknown ?? 0),
        untimed: BigInt(figures.untimed ?? 0),
      };
    }),
    position,
  };
}
