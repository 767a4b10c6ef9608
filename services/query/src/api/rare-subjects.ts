import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { key } from "../db/text.ts";
import type { SqlCondition } from "./conditions.ts";

/** What has more operations than this is not rare: among the newest operations there are enough of it. */
export const rare = 2_000;

/** Whether few operations have one of these subjects, or its instance. It is read from indexes. */
export async function areRare(tx: Tx, subjects: readonly string[]): Promise<boolean> {
  const named = (column: SqlCondition) => sql`
    select from operations t where ${column} = requested.name and ${column} <> ''
    order by ${column}, t.start_position limit ${rare}`;
  const { rows } = await sql<{ count: number }>`
    select count(*) from unnest(${subjects.map(key)}::text[]) as requested (name)
    cross join lateral ((${named(sql`t.subject`)}) union all (${named(sql`t.instance`)})) as t`.execute(tx);
  return (rows[0]?.count ?? 0) < rare;
}
