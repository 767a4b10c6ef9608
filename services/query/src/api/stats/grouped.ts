import type { BuildStatsRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { formatPosition } from "@tapedeck/shared/log/position";
import { ownValue } from "@tapedeck/shared/own-value";
import { sql } from "kysely";
import { readConsistently } from "../../db/read.ts";
import { text } from "../../db/text.ts";
import { allOf, anyOf, between, namedSources, type SqlCondition } from "../conditions.ts";
import type { ApiDeps } from "../deps.ts";
import { notProjected, reachMinimum } from "../reach.ts";
import { zoneName } from "./time-zone.ts";

/**
 * The parts of a kind of statistics. All columns belong to the relation named `t`, one row of which is counted as one.
 */
export type Counted<Figure extends string> = {
  readonly from: SqlCondition;
  /** When the row's subject began. Undefined: the rows are those of the range, and have no time. */
  readonly at?: SqlCondition;
  /** Session, runner and loop of what the row is about, as the API names a loop. */
  readonly loop?: SqlCondition;
  /** The condition that a row is about one of these artifacts, where no column is the artifact. */
  readonly ofArtifacts?: (artifacts: readonly string[]) => SqlCondition;
  /** The columns to filter and to group by, besides those that every kind has. */
  readonly columns: Readonly<Record<string, SqlCondition>>;
  readonly figures: Readonly<Record<Figure, SqlCondition>>;
  /** Conditions that are equivalent to the request's, for an index. */
  readonly also?: (request: BuildStatsRequest) => readonly (SqlCondition | undefined)[];
};

export type StatsGroup<Figure extends string> = {
  readonly group: Readonly<Record<string, string>>;
  readonly figures: Readonly<Record<Figure, number | null>>;
};

/** A request for more groups is refused, because they are of no use. */
const maxGroups = 10_000;

/** Counts the rows that the request wants, by the columns that it names. Groups come in the order of their names. */
export async function countGrouped<Figure extends string>(
  deps: ApiDeps,
  request: BuildStatsRequest,
  counted: Counted<Figure>,
): Promise<{ readonly items: readonly StatsGroup<Figure>[]; readonly position: string }> {
  if (request.workspace === "") throw invalidArgument("workspace is missing", "workspace");
  const groups = [...new Set(request.group)];
  const columns = columnsOf(counted, await zoneName(deps.database(), request.zone));
  const grouped = groups.map((name) => columnOf(columns, name));
  const { ofArtifacts = (names) => anyOf(counted.columns.artifact ?? sql`null`, names) } = counted;
  if (request.artifacts.length > 0 && counted.columns.artifact === undefined && counted.ofArtifacts === undefined) {
    throw invalidArgument("these statistics have no artifacts", "artifact");
  }
  // Grouped by themselves and named later: arrays of text are slow to sort.
  const keys = grouped.map((column, index) => sql`${column} as ${sql.ref(`key${index}`)}`);
  const names = sql`array[${sql.join(grouped.map((_, index) => sql.ref(`key${index}`)))}]::text[]`;
  const figures = Object.entries<SqlCondition>(counted.figures).map(
    ([name, figure]) => sql`${figure} as ${sql.ref(name)}`,
  );
  const conditions = [
    sql`t.workspace = ${text(request.workspace)}`,
    anyOf(sql`t.developer`, request.developers),
    anyOf(sql`t.project`, request.projects),
    anyOf(sql`split_part(t.source, '/', 4)`, request.upstreams),
    namedSources(request),
    anyOf(sql`t.session`, request.sessions),
    request.artifacts.length === 0 ? undefined : ofArtifacts(request.artifacts),
    ...Object.entries(request.labels).map(([name, value]) => sql`t.labels ->> ${text(name)} = ${text(value)}`),
    ...(counted.at === undefined ? [] : between(counted.at, request)),
    ...(counted.also?.(request) ?? []),
  ];
  await reachMinimum(deps, request.min_position);
  return readConsistently(deps.database(), deps.workspace, async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const { rows } = await sql<{ names: readonly (string | null)[] } & Record<Figure, number | null>>`
      select ${names} as names, counted.* from (
        select ${sql.join([...keys, ...figures])} from ${counted.from} as t where ${allOf(conditions)}
        ${grouped.length === 0 ? sql`` : sql`group by ${sql.join(keys.map((_, index) => sql.ref(`key${index}`)))}`}) as counted
      order by names limit ${maxGroups + 1}`.execute(tx);
    if (rows.length > maxGroups) {
      throw new TapedeckError(
        "limit_exceeded",
        `more than ${maxGroups} groups: narrow the request, for example to a shorter time`,
      );
    }
    const items = rows.map((row) => ({
      group: Object.fromEntries(groups.map((name, index) => [name, row.names[index] ?? ""])),
      figures: Object.fromEntries(
        (Object.keys(counted.figures) as Figure[]).map((name): [Figure, number | null] => [name, row[name]]),
      ) as Record<Figure, number | null>,
    }));
    return { items, position: formatPosition({ epoch: checkpoint.epoch, offset: checkpoint.position }) };
  });
}

function columnsOf<Figure extends string>(
  { at, loop, columns }: Counted<Figure>,
  zone: string,
): Record<string, SqlCondition> {
  if (at === undefined) return { ...columns };
  const there = sql`${at} at time zone ${sql.lit(zone)}`;
  return {
    developer: sql`t.developer`,
    project: sql`t.project`,
    source: sql`t.source`,
    // An hour is a moment: the hour that a clock shows twice in autumn is two.
    hour: sql`to_char(date_trunc('hour', ${at}, ${sql.lit(zone)}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
    day: sql`(${there})::date`,
    // The week's Monday.
    week: sql`date_trunc('week', ${there})::date`,
    // With these two, an answer has the rows that a number is made of.
    time: sql`to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
    ...(loop && { loop }),
    ...columns,
  };
}

const label = "label.";

function columnOf(columns: Readonly<Record<string, SqlCondition>>, name: string): SqlCondition {
  if (name.startsWith(label)) return sql`coalesce(t.labels ->> ${sql.lit(text(name.slice(label.length)))}, '')`;
  const column = ownValue(columns, name);
  if (column !== undefined) return column;
  const known = [...Object.keys(columns), `${label}<name>`].join(", ");
  throw invalidArgument(`can't group by "${name}": use one of ${known}`, "group");
}

/** The name of a row's loop; with `id` that of an operation's. */
export function loopOf(id?: SqlCondition): SqlCondition {
  if (id === undefined) return sql`t.session || '.' || t.runner || '.' || t.loop`;
  return sql`(select o.session || '.' || o.runner || '.' || o.loop from operations o where o.id = ${id})`;
}

export function percentile(part: number, column: SqlCondition, where?: SqlCondition): SqlCondition {
  const filter = where === undefined ? sql`` : sql` filter (where ${where})`;
  return sql`percentile_cont(${sql.lit(part)}::float8) within group (order by ${column})${filter}`;
}
