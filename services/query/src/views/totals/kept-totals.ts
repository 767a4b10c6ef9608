import { sql } from "kysely";
import { internalSchema, type Tx } from "../../db/database.ts";
import { figures } from "./buckets.ts";
import { allProjects } from "./totals.ts";

/**
 * Brings the totals of another schema over, row by row the larger figures: made anew from the log they lack what was erased
 * since, and a counter of Prometheus that falls looks as if all of it had happened again.
 */
export async function keepTotals(tx: Tx, from: string, into: string, workspace?: string): Promise<void> {
  const [there, here] = [from, into].map((schema) => `${internalSchema(schema)}.operation_totals`);
  if (there === undefined || here === undefined || !(await exists(tx, there))) return;
  const larger = [...figures, "last_at"].map(
    (name) => sql`${sql.ref(name)} = greatest(t.${sql.ref(name)}, excluded.${sql.ref(name)})`,
  );
  const own = workspace === undefined ? sql`true` : sql`f.workspace = ${workspace}`;
  await sql`
    insert into ${sql.table(here)} as t
    select f.* from ${sql.table(there)} f
    where ${own} and exists (
      select from ${sql.table(`${into}.sources`)} s
      where s.workspace = f.workspace and f.project in (s.project, ${allProjects}))
    on conflict (workspace, project, kind, outcome, phase) do update set ${sql.join(larger)}`.execute(tx);
}

/** Tables of an earlier version have no totals. */
async function exists(tx: Tx, table: string): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass(${table}) is not null as there`.execute(tx);
  return rows[0]?.there === true;
}

/** Removes the totals of projects that have no source any more. Those of the workspace still count what was done in them. */
export async function forgetTotals(tx: Tx, sources: readonly string[]): Promise<void> {
  await sql`
    delete from operation_totals t
    where workspace in (select distinct split_part(source, '/', 1) from unnest(${sources}::text[]) as erased (source))
      and project <> ${allProjects}
      and not exists (select from sources s where s.workspace = t.workspace and s.project = t.project)`.execute(tx);
}
