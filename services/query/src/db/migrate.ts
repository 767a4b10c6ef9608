import { type Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { applyComments } from "./comments/apply.ts";
import type { Database } from "./database.ts";
import { makeLocks, whileMigrating } from "./lock.ts";
import { migrations } from "./migrations/index.ts";
import type { Schema } from "./schema.ts";

/** A later Tapedeck than this one migrated the database. */
export class NewerSchemaError extends Error {
  override readonly name = "NewerSchemaError";
  readonly migration: string;
  constructor(migration: string) {
    super(
      `the database has the schema of a newer Tapedeck (it knows "${migration}", this one does not): update Tapedeck, or give it another database.`,
    );
    this.migration = migration;
  }
}

/**
 * Creates the schema of this database handle or brings it up to date. Concurrent calls wait for each other.
 * @throws NewerSchemaError before anything is changed
 */
export async function migrate(database: Database): Promise<void> {
  const { db, schema } = database;
  const newer = (await executed(db, schema)).find((name) => !(name in migrations));
  if (newer !== undefined) throw new NewerSchemaError(newer);
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...migrations }) },
    migrationTableSchema: schema,
  });
  await makeLocks(database);
  await whileMigrating(database, async () => {
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw error;
    await applyComments(database);
  });
}

async function executed(db: Kysely<Schema>, schema: string): Promise<string[]> {
  const table = sql.table(`${schema}.kysely_migration`);
  const { rows: there } = await sql<{ there: boolean }>`
    select to_regclass(${`${schema}.kysely_migration`}) is not null as there`.execute(db);
  if (there[0]?.there !== true) return [];
  const { rows } = await sql<{ name: string }>`select name from ${table} order by name`.execute(db);
  return rows.map(({ name }) => name);
}
