import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

export type Step = {
  /** Creates what readers may not read, and functions that they need not call. A trigger is where its table is. */
  readonly isInternal: boolean;
  readonly statements: readonly string[];
};

/**
 * A migration of statements with unqualified names: the connection's search_path names the schemas being built, that of the
 * readers and the internal one.
 */
export function migrationOf(steps: readonly Step[]): Migration {
  return {
    async up(db: Kysely<unknown>) {
      const { rows } = await sql<{ name: string }>`select unnest(current_schemas(false)) as name`.execute(db);
      const schemas = rows.map(({ name }) => name);
      for (const { isInternal, statements } of steps)
        await run(db, isInternal ? schemas.toReversed() : schemas, statements);
      await run(db, schemas, []);
    },
  };
}

/** New objects go to the first schema. */
async function run(db: Kysely<unknown>, schemas: readonly string[], statements: readonly string[]): Promise<void> {
  await sql`select set_config('search_path', ${schemas.join(", ")}, true)`.execute(db);
  for (const statement of statements) await sql.raw(statement).execute(db);
}
