import { sql } from "kysely";
import type { Database } from "../db/database.ts";
import { columnTypes } from "../db/schema.generated.ts";

/** How many rows each table has of a workspace. */
export async function rowsOf({ db }: Database, workspace: string): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const [name, columns] of Object.entries<Readonly<Record<string, string>>>(columnTypes)) {
    if (name.startsWith("kysely") || name === "changed_build_days") continue;
    const own =
      "workspace" in columns
        ? sql`workspace = ${workspace}`
        : "source" in columns
          ? sql`starts_with(source, ${`${workspace}/`})`
          : sql`starts_with(session, ${`${workspace}-`})`;
    const { rows } = await sql<{ count: number }>`select count(*) from ${sql.table(name)} where ${own}`.execute(db);
    counts[name] = rows[0]?.count ?? 0;
  }
  return counts;
}
