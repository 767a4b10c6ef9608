import { type Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { applyComments } from "./comments/apply.ts";
import { type Database, internalSchema, schemasOf } from "./database.ts";
import { makeLocks, whileMigrating } from "./lock.ts";
import { migrations } from "./migrations/index.ts";
import { makeOnce, privateSchema } from "./private.ts";
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

/** The oldest major version of Postgres that Tapedeck supports. */
const leastPostgres = 16;

/** The server's Postgres is too old; the database may be moved to another one. */
export class OldPostgresError extends Error {
  override readonly name = "OldPostgresError";
}

/** Why a Postgres can't have the tables; `versionNumber` is its `server_version_num`. */
export function refusalOfPostgres(versionNumber: number): OldPostgresError | undefined {
  const major = Math.floor(versionNumber / 10_000);
  if (major >= leastPostgres) return undefined;
  return new OldPostgresError(`the database is of Postgres ${major}, and Tapedeck needs ${leastPostgres} or newer.`);
}

/**
 * Creates the schemas of this database handle or brings them up to date. Concurrent calls wait for each other.
 * @param known the migrations of this version
 * @throws OldPostgresError or NewerSchemaError before anything is changed
 */
export async function migrate(database: Database, known = migrations): Promise<void> {
  const { db, schema } = database;
  const { rows } = await sql<{ version: number }>`
    select current_setting('server_version_num')::int as version`.execute(db);
  const refusal = refusalOfPostgres(rows[0]?.version ?? 0);
  if (refusal !== undefined) throw refusal;
  const newer = (await executed(db, schema)).find((name) => !Object.hasOwn(known, name));
  if (newer !== undefined) throw new NewerSchemaError(newer);
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...known }) },
    migrationTableSchema: internalSchema(schema),
  });
  await makePrerequisites(database);
  await whileMigrating(database, async () => {
    await createSchemas(database);
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw error;
    await applyComments(database);
  });
}

/** What migrations need of the database itself. */
export async function makePrerequisites(database: Database): Promise<void> {
  await makeLocks(database);
  await makeOnce(database.db, makeTrigrams);
}

/** This Postgres lacks a module that is part of its distribution. */
export class MissingModuleError extends Error {
  override readonly name = "MissingModuleError";
}

/** The module whose indexes find substrings. Whoever may create schemas may create it. */
async function makeTrigrams(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ made: boolean }>`
    select exists (select from pg_extension where extname = name) as made from pg_available_extensions where name = 'pg_trgm'`.execute(
    db,
  );
  const [known] = rows;
  if (known === undefined) {
    throw new MissingModuleError(
      "this Postgres lacks pg_trgm, one of its own modules: install them (package postgresql-contrib where they are apart).",
    );
  }
  if (!known.made) await sql`create extension pg_trgm schema ${sql.id(privateSchema)}`.execute(db);
}

/** `create schema if not exists` needs the right to create schemas where it exists, too. */
export async function createSchemas({ db, schema }: Pick<Database, "db" | "schema">): Promise<void> {
  for (const name of schemasOf(schema)) {
    const { rows } = await sql`select from pg_namespace where nspname = ${name}`.execute(db);
    if (rows.length === 0) await sql`create schema ${sql.id(name)}`.execute(db);
  }
}

async function executed(db: Kysely<Schema>, schema: string): Promise<string[]> {
  const name = `${internalSchema(schema)}.kysely_migration`;
  const { rows: there } = await sql<{ there: boolean }>`
    select to_regclass(${name}) is not null as there`.execute(db);
  if (there[0]?.there !== true) return [];
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(name)} order by name`.execute(db);
  return rows.map(({ name }) => name);
}
