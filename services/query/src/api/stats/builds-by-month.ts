import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { BuildStatsRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { sql } from "kysely";
import { isStillExpired } from "../../db/migrations/0001-tables/conditions.ts";
import { text } from "../../db/text.ts";
import { storedTimestamp } from "../../db/timestamp.ts";
import { allOf, type SqlCondition } from "../conditions.ts";
import type { ApiDeps } from "../deps.ts";
import type { Counted } from "./grouped.ts";

/** With more builds than this, their percentiles are made of the counts by month and duration, and are up to 1 % off. */
const exactUpTo = 50_000;

type CountedRange = Pick<BuildStatsRequest, "workspace" | "from" | "to">;

/** What build_months can be filtered and grouped by. */
const known = new Set(["artifact", "project"]);

/** Whether the counts by month can answer, and counting every build would take long. */
export async function canCountByMonth(deps: ApiDeps, request: BuildStatsRequest): Promise<boolean> {
  const { workspace, group, developers, upstreams, sources, sessions, labels, from, to } = request;
  const isNarrow = [developers, upstreams, sources, sessions, Object.keys(labels)].some(({ length }) => length > 0);
  if (isNarrow || !group.every((name) => known.has(name))) return false;
  const { rows } = await sql<{ builds: number }>`
    select coalesce(sum(builds), 0)::bigint as builds from build_months
    where ${allOf([
      sql`workspace = ${text(workspace)}`,
      from && sql`month >= ${monthOf(from)}::date`,
      to && sql`month <= ${monthOf(to)}::date`,
    ])}`.execute(deps.database().db);
  return (rows[0]?.builds ?? 0) > exactUpTo || (await hasExpired(deps, request));
}

/** Nothing but counts is left of the builds of expired sessions. */
async function hasExpired(deps: ApiDeps, request: BuildStatsRequest): Promise<boolean> {
  const { rows } = await sql`select from (${expired(request)}) counted limit 1`.execute(deps.database().db);
  return rows.length > 0;
}

/** The builds of expired sessions in the range, whose ends are days in UTC. */
function expired({ workspace, from, to }: CountedRange): SqlCondition {
  const day = (timestamp: Timestamp) => sql`${dayOf(timestamp)}::date`;
  return sql`
    select workspace, project, artifact, bucket, builds, failed, cached, canceled, unknown from expired_builds e
    where ${allOf([
      sql`workspace = ${text(workspace)}`,
      sql.raw(isStillExpired),
      (from ?? to) && sql`day > '-infinity'`,
      from && sql`day >= ${day(from)}`,
      to && sql`day < ${day(to)}`,
    ])}`;
}

/** Counts whole months by their buckets, and the builds of the parts of months at both ends one by one. */
export function buildsByMonth(request: BuildStatsRequest): Counted<string> {
  const percentile = (part: number) =>
    sql`bucket_percentile(array_agg(t.bucket), array_agg(t.builds), ${sql.lit(part)}::float8)`;
  const sum = (column: string) => sql`coalesce(sum(${sql.ref(`t.${column}`)}), 0)::bigint`;
  return {
    from: sql`(
      select workspace, project, artifact, bucket, sum(builds)::bigint as builds, sum(failed)::bigint as failed,
        sum(cached)::bigint as cached, sum(canceled)::bigint as canceled, sum(unknown)::bigint as unknown
      from (${sql.join(partsOf(request), sql` union all `)}) parts group by 1, 2, 3, 4)`,
    columns: { artifact: sql`t.artifact`, project: sql`t.project` },
    figures: {
      count: sum("builds"),
      failed: sum("failed"),
      p50_ms: percentile(0.5),
      p90_ms: percentile(0.9),
      p99_ms: percentile(0.99),
      cached: sum("cached"),
      canceled: sum("canceled"),
      unknown: sum("unknown"),
      untimed: sql`coalesce(sum(t.builds) filter (where t.bucket = -1), 0)::bigint`,
    },
  };
}

function partsOf({ workspace, from, to }: CountedRange): readonly SqlCondition[] {
  // The whole months of the range are [first, end). There are none if the range is within a month.
  const first = from && (monthOf(from) === dayText(from) ? monthOf(from) : monthOf(from, 1));
  const end = to && monthOf(to);
  const months = sql`
    select workspace, project, artifact, bucket, builds, failed, cached, canceled, unknown from build_months
    where ${allOf([
      sql`workspace = ${text(workspace)}`,
      // Builds without a time are in no range.
      (from ?? to) && sql`month > '-infinity'`,
      first === undefined ? undefined : sql`month >= ${first}::date`,
      end === undefined ? undefined : sql`month < ${end}::date`,
    ])}`;
  const isWithinMonth = first !== undefined && end !== undefined && first > end;
  return [
    months,
    expired({ workspace, from, to }),
    ...(from === undefined || first === undefined ? [] : [edge(workspace, from, isWithinMonth ? to : first)]),
    ...(to === undefined || end === undefined || isWithinMonth ? [] : [edge(workspace, end, to)]),
  ];
}

/** The builds of [from, to), which are a month's at most. A text is a day in UTC. */
function edge(workspace: string, from: Timestamp | string, to: Timestamp | string | undefined): SqlCondition {
  const timestampSql = (at: Timestamp | string) =>
    typeof at === "string" ? sql`${`${at}T00:00:00Z`}::timestamptz` : sql`${storedTimestamp(at).at}::timestamptz`;
  const day = sql`(started_at at time zone 'UTC')::date`;
  return sql`
    select workspace, project, artifact,
      case when ran and duration_ms is not null then duration_bucket(duration_ms) else -1 end,
      ran::int, (ran and outcome = 'failed')::int, cache_hit::int, (outcome = 'canceled')::int, (outcome = 'unknown')::int
    from (select *, outcome in ('succeeded', 'failed') and not cache_hit as ran from build_times) build
    where ${allOf([
      sql`workspace = ${text(workspace)} and not injected`,
      sql`started_at >= ${timestampSql(from)} and ${day} >= (${timestampSql(from)} at time zone 'UTC')::date`,
      to === undefined
        ? undefined
        : sql`started_at < ${timestampSql(to)} and ${day} <= (${timestampSql(to)} at time zone 'UTC')::date`,
    ])}`;
}

/** The first day of the timestamp's month, in UTC, or of a later one. */
function monthOf(timestamp: Timestamp, later = 0): string {
  const date = dateOf(timestamp);
  date.setUTCMonth(date.getUTCMonth() + later, 1);
  // Postgres takes the year 10000, which a month of 9999 ends in, without the sign that ISO 8601 gives it.
  const year = String(date.getUTCFullYear()).padStart(4, "0");
  return `${year}-${String(date.getUTCMonth() + 1).padStart(2, "0")}-01`;
}

/** In UTC. Postgres takes the year 10000 without the sign that ISO 8601 gives it. */
function dayOf(timestamp: Timestamp): string {
  const date = dateOf(timestamp);
  return `${String(date.getUTCFullYear()).padStart(4, "0")}-${date.toISOString().slice(-19, -14)}`;
}

/** The day, if the timestamp is its very beginning; otherwise a text that no day has. */
function dayText(timestamp: Timestamp): string {
  const isDay = timestamp.nanos === 0 && timestamp.seconds % 86_400n === 0n;
  return isDay ? dateOf(timestamp).toISOString().slice(0, 10) : "";
}

function dateOf({ seconds }: Timestamp): Date {
  return new Date(Number(seconds) * 1_000);
}
