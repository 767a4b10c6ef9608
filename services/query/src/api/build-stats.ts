import type { BuildStatsRequest, BuildStatsResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import { momentOf } from "../db/moment.ts";
import { readConsistently } from "../db/read.ts";
import { text } from "../db/text.ts";
import { allOf, anyOf, between, type Condition } from "./conditions.ts";
import type { ApiDeps } from "./deps.ts";
import { notProjected, reachMinimum } from "./reach.ts";

/** The columns to group by. Days are UTC days. */
const columns: Readonly<Record<string, Condition>> = {
  artifact: sql`t.artifact`,
  developer: sql`t.developer`,
  project: sql`t.project`,
  source: sql`t.source`,
  day: sql`(t.started_at at time zone 'UTC')::date`,
};

/** A request for more groups is refused, because nobody reads them. */
const maxGroups = 10_000;

/** The days of the range again, by which builds are found. */
function daysBetween({ from, to }: BuildStatsRequest): (Condition | undefined)[] {
  const day = sql`(t.started_at at time zone 'UTC')::date`;
  const of = (timestamp: BuildStatsRequest["from"]) =>
    timestamp && sql`(${momentOf(timestamp).at}::timestamptz at time zone 'UTC')::date`;
  const [first, last] = [of(from), of(to)];
  return [first && sql`${day} >= ${first}`, last && sql`${day} <= ${last}`];
}

type Row = {
  readonly names: readonly (string | null)[];
  readonly count: number;
  readonly failed: number;
  readonly p50_ms: number | null;
  readonly p90_ms: number | null;
  readonly p99_ms: number | null;
  readonly cached: number;
  readonly canceled: number;
  readonly unknown: number;
};

export async function buildStats(deps: ApiDeps, request: BuildStatsRequest): Promise<BuildStatsResponse> {
  if (request.workspace === "") throw invalidArgument("workspace is missing", "workspace");
  const groups = [...new Set(request.group)];
  const grouped = groups.map((name) => {
    const column = Object.hasOwn(columns, name) ? columns[name] : undefined;
    if (column === undefined)
      throw invalidArgument(`can't group by "${name}": any of ${Object.keys(columns).join(", ")}`, "group");
    return column;
  });
  // Grouped by themselves and named later: arrays of text are slow to sort.
  const keys = sql.join(grouped.map((column, index) => sql`${column} as ${sql.ref(`key${index}`)}`));
  const names = sql`array[${sql.join(grouped.map((_, index) => sql.ref(`key${index}`)))}]::text[]`;
  const conditions = [
    sql`t.workspace = ${text(request.workspace)}`,
    anyOf(sql`t.developer`, request.developers),
    anyOf(sql`t.project`, request.projects),
    anyOf(sql`t.artifact`, request.artifacts),
    ...between(sql`t.started_at`, request),
    ...daysBetween(request),
  ];
  await reachMinimum(deps, request.min_position);
  return readConsistently(deps.database(), async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const { rows } = await sql<Row>`
      select ${names} as names, counted.* from (select ${grouped.length === 0 ? sql`` : sql`${keys},`}
        count(*) filter (where ran) as count,
        count(*) filter (where ran and outcome = 'failed') as failed,
        percentile_cont(0.5) within group (order by duration_ms) filter (where ran) as p50_ms,
        percentile_cont(0.9) within group (order by duration_ms) filter (where ran) as p90_ms,
        percentile_cont(0.99) within group (order by duration_ms) filter (where ran) as p99_ms,
        count(*) filter (where cache_hit) as cached,
        count(*) filter (where outcome = 'canceled') as canceled,
        count(*) filter (where outcome = 'unknown') as unknown
      from (select *, outcome in ('succeeded', 'failed') and not cache_hit as ran from build_times) as t
      where ${allOf(conditions)}
      ${grouped.length === 0 ? sql`` : sql`group by ${sql.join(grouped)}`}) as counted
      order by names limit ${maxGroups + 1}`.execute(tx);
    if (rows.length > maxGroups) {
      throw new TapedeckError(
        "limit_exceeded",
        `more than ${maxGroups} groups: ask for less, for example a shorter time`,
      );
    }
    return {
      items: rows.map((row) => ({
        group: Object.fromEntries(groups.map((name, index) => [name, row.names[index] ?? ""])),
        count: BigInt(row.count),
        failed: BigInt(row.failed),
        failure_rate: row.count === 0 ? 0 : row.failed / row.count,
        p50_ms: row.p50_ms ?? undefined,
        p90_ms: row.p90_ms ?? undefined,
        p99_ms: row.p99_ms ?? undefined,
        cached: BigInt(row.cached),
        canceled: BigInt(row.canceled),
        unknown: BigInt(row.unknown),
      })),
      position: formatPosition({ epoch: checkpoint.epoch, offset: checkpoint.position }),
    };
  });
}
