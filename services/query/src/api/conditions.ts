import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { type RawBuilder, sql } from "kysely";
import { plain, text } from "../db/text.ts";
import { storedTimestamp } from "../db/timestamp.ts";

export type SqlCondition = RawBuilder<unknown>;

/** The conjunction of the conditions. It is never empty, because the workspace is always one of them. */
export function allOf(conditions: readonly (SqlCondition | undefined)[]): SqlCondition {
  return sql.join(
    conditions.filter((condition) => condition !== undefined),
    sql` and `,
  );
}

/** Any of the values; without values, no condition. */
export function anyOf(column: SqlCondition, values: readonly string[]): SqlCondition | undefined {
  return values.length === 0 ? undefined : sql`${column} = any(${values.map(text)}::text[])`;
}

/** The filters that every list has. The columns belong to the table named `t`. */
export function ofSource(request: ListRequest): (SqlCondition | undefined)[] {
  if (request.workspace === "") {
    throw invalidArgument("workspace is missing", "workspace");
  }
  return [
    sql`t.workspace = ${text(request.workspace)}`,
    anyOf(sql`t.developer`, request.developers),
    anyOf(sql`t.project`, request.projects),
    anyOf(sql`t.upstream`, request.upstreams),
    namedSources(request),
  ];
}

/** `developer/project`, `developer/project/upstream` or in full. */
export function namedSources({
  workspace,
  sources,
}: Pick<ListRequest, "workspace" | "sources">): SqlCondition | undefined {
  if (sources.length === 0) return undefined;
  const names = sources.map((source) => {
    const value = text(source.split("/").length === 4 ? source : `${workspace}/${source}`);
    return value.split("/").length === 4 ? sql`t.source = ${value}` : sql`starts_with(t.source, ${`${value}/`})`;
  });
  return sql`(${sql.join(names, sql` or `)})`;
}

/** A column of labels has all of those that the request names. */
export function hasLabels(column: SqlCondition, { labels }: Pick<ListRequest, "labels">): SqlCondition | undefined {
  if (Object.keys(labels).length === 0) return undefined;
  return sql`${column} @> ${JSON.stringify(plain(labels))}::jsonb`;
}

/** [from, to). */
export function between(
  column: SqlCondition,
  { from, to }: { readonly from?: Timestamp | undefined; readonly to?: Timestamp | undefined },
): (SqlCondition | undefined)[] {
  return [
    from === undefined ? undefined : sql`${column} >= ${timestampValue(from, "from")}::timestamptz`,
    to === undefined ? undefined : sql`${column} < ${timestampValue(to, "to")}::timestamptz`,
  ];
}

function timestampValue(timestamp: Timestamp, field: string): string {
  const { at } = storedTimestamp(timestamp);
  if (at === null) throw invalidArgument(`${field} is not a time`, field);
  return at;
}
