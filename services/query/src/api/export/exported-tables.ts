import type { TableColumn } from "@tapedeck/proto/tapedeck/v1/tables";
import pg from "pg";

/** A table or view of docs/sql.md whose rows are exported. */
export type ExportedTable = {
  readonly name: string;
  /** The condition on the rows of the time from `from` until before `to`. Absent: the table has no days. */
  readonly within?: (from: string, to: string) => string;
  /** What is not exported: what the name of the day's folder says already. */
  readonly without?: string;
  /** What the workspace and the developer of a row are. Default: columns of these names. */
  readonly workspace?: string;
  /** Undefined, although the table has it: no developer is in the rows. */
  readonly developer?: string | undefined;
};

const between = (expression: string) => (from: string, to: string) =>
  `${expression} >= ${from} and ${expression} < ${to}`;

/** For tables that have no index by the first of the two times. */
const startedOrEnded = (from: string, to: string) =>
  `(${between("started_at")(from, to)} or started_at is null and ${between("ended_at")(from, to)})`;

/** Each has an index by its time, or few rows. */
export const exportedTables: readonly ExportedTable[] = [
  { name: "workspaces", developer: undefined },
  {
    name: "vagrant_targets",
    workspace: "split_part(source, '/', 1)",
    developer: "split_part(source, '/', 2)",
  },
  { name: "operations", within: between("coalesce(started_at, ended_at)") },
  { name: "loops", within: startedOrEnded },
  { name: "loop_times", within: startedOrEnded },
  { name: "time_to_green", within: between("failed_at") },
  { name: "failures", within: between("failed_at") },
  { name: "build_times", within: between("started_at") },
  {
    name: "build_times_daily",
    within: (from) => `day = (${from} at time zone 'UTC')::date`,
    without: "day",
  },
  { name: "vagrant_command_times", within: between("started_at") },
  { name: "pod_runs", within: startedOrEnded },
  { name: "events", within: between("recorded_at") },
];

type Exported = { readonly type: string; readonly as?: (column: string) => string };

/** By the type's OID, which is the same in every Postgres. The upstreams' messages, which are bytes, are left out. */
const types: Readonly<Record<number, Exported | "left out">> = {
  16: { type: "boolean" },
  17: "left out",
  20: { type: "int64" },
  23: { type: "int32" },
  25: { type: "text" },
  701: { type: "double" },
  1009: { type: "json", as: (column) => `to_jsonb(${column})::text` },
  1184: { type: "timestamp" },
  3802: { type: "json", as: (column) => `${column}::text` },
};

/** It takes Postgres 20 µs to make one. Whoever reads the files makes it of the position beside it. */
const isPositionText = /(^|_)position_text$/;

/** The columns of a table as they are exported, and how they are selected. */
export function columnsOf(
  { name, without }: ExportedTable,
  fields: readonly Pick<pg.FieldDef, "name" | "dataTypeID">[],
): { readonly columns: TableColumn[]; readonly select: string } {
  const selected = fields.flatMap((field) => {
    if (field.name === without || isPositionText.test(field.name)) return [];
    const known = types[field.dataTypeID];
    if (known === undefined) throw new Error(`${name}.${field.name} has a type that is not exported`);
    if (known === "left out") return [];
    const column = pg.escapeIdentifier(field.name);
    return [{ column: { name: field.name, type: known.type }, select: known.as?.(column) ?? column }];
  });
  return { columns: selected.map(({ column }) => column), select: selected.map(({ select }) => select).join(", ") };
}

export type RowsOf = { readonly workspace: string; readonly developer: string | undefined };

/** The condition on the rows of a workspace, and of a developer if it is given. `day`: "2026-01-31". */
export function conditionOn(table: ExportedTable, of: RowsOf, day: string): string {
  const conditions = [`${table.workspace ?? "workspace"} = ${pg.escapeLiteral(of.workspace)}`];
  const developer = "developer" in table ? table.developer : "developer";
  if (of.developer !== undefined && developer !== undefined)
    conditions.push(`${developer} = ${pg.escapeLiteral(of.developer)}`);
  if (table.within !== undefined) {
    const at = (time: string) => `timestamptz ${pg.escapeLiteral(time)}`;
    conditions.push(table.within(at(`${day}T00:00:00Z`), at(`${dayAfter(day)}T00:00:00Z`)));
  }
  return conditions.join(" and ");
}

export function dayAfter(day: string): string {
  return new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
}
