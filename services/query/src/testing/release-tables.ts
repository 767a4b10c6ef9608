import { createHash } from "node:crypto";
import { sql } from "kysely";
import { Migrator } from "kysely/migration";
import { type Database, internalSchema, openDatabase } from "../db/database.ts";
import { createSchemas, makePrerequisites } from "../db/migrate.ts";
import { migrations } from "../db/migrations/index.ts";

/** The tables of a release: how they were made, and what was in them. */
export type ReleaseTables = {
  /** The migrations that had run, in their order. */
  readonly migrations: readonly string[];
  /** A short hash of each table, view, index, function and trigger, by name. */
  readonly schema: Readonly<Record<string, string>>;
  /** The months that `events` had partitions for, as Postgres writes their bounds. */
  readonly partitions: Readonly<Record<string, string>>;
  readonly rows: Readonly<Record<string, readonly unknown[]>>;
};

export const migrationNames: readonly string[] = Object.keys(migrations);

/** What the tables of this version hold. Query must not be running. */
export async function dumpTables(url: string): Promise<ReleaseTables> {
  await using database = openDatabase({ url, connections: 1 });
  const { db } = database;
  const rows: Record<string, readonly unknown[]> = {};
  for (const table of await tablesOf(database)) {
    const found = await sql<{ all: readonly unknown[] }>`
      select coalesce(jsonb_agg(to_jsonb(t)), '[]') as all from ${sql.table(table)} t`.execute(db);
    rows[table] = found.rows[0]?.all ?? [];
  }
  const bounds = await sql<{ name: string; bound: string }>`
    select relname as name, pg_get_expr(relpartbound, oid) as bound from pg_class
    where relnamespace = any(current_schemas(false)::regnamespace[]) and relispartition and relkind = 'r' order by 1`.execute(
    db,
  );
  const partitions = Object.fromEntries(bounds.rows.map(({ name, bound }) => [name, bound]));
  return { migrations: migrationNames, schema: await schemaOf(database), partitions, rows };
}

/** Makes the schemas of the migrations up to one in an empty database, and gives its hashes. */
export async function migrateTo(url: string, last: string): Promise<ReleaseTables["schema"]> {
  await using database = openDatabase({ url, connections: 1 });
  const upTo = Object.fromEntries(Object.entries(migrations).filter(([name]) => name <= last));
  await makePrerequisites(database);
  await createSchemas(database);
  const migrator = new Migrator({
    db: database.db,
    provider: { getMigrations: async () => upTo },
    migrationTableSchema: internalSchema(database.schema),
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  return await schemaOf(database);
}

/** Fills tables that `migrateTo` has made. The connection must be a superuser's. */
export async function fillTables(url: string, { partitions, rows }: ReleaseTables): Promise<void> {
  await using database = openDatabase({ url, connections: 1 });
  await database.db.transaction().execute(async (tx) => {
    // What triggers write is among the rows.
    await sql`set local session_replication_role = replica`.execute(tx);
    for (const [name, bound] of Object.entries(partitions)) {
      await sql`create table ${sql.table(`${internalSchema(database.schema)}.${name}`)} partition of events ${sql.raw(bound)}`.execute(
        tx,
      );
    }
    for (const [table, all] of Object.entries(rows)) {
      await sql`insert into ${sql.table(table)} overriding system value
        select * from jsonb_populate_recordset(null::${sql.table(table)}, ${JSON.stringify(all)}::jsonb)`.execute(tx);
    }
    await sql`select setval(pg_get_serial_sequence(format('%I.%I', table_schema, table_name), column_name), 1000000)
      from information_schema.columns where table_schema = any(current_schemas(false)) and is_identity = 'YES'`.execute(
      tx,
    );
  });
}

async function tablesOf({ db }: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relnamespace = any(current_schemas(false)::regnamespace[]) and relkind in ('r', 'p') and not relispartition
      and relname !~ '^kysely_' order by 1`.execute(db);
  return rows.map(({ name }) => name);
}

async function schemaOf({ db }: Database): Promise<ReleaseTables["schema"]> {
  const { rows } = await sql<{ name: string; text: string }>`
    with ours as (select oid, relname, relkind from pg_class
      where relnamespace = any(current_schemas(false)::regnamespace[]) and not relispartition)
    select 'table ' || relname as name,
      (select string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, attidentity), ',' order by attnum)
        from pg_attribute where attrelid = ours.oid and attnum > 0 and not attisdropped) as text
    from ours where relkind in ('r', 'p') and relname !~ '^kysely_'
    union all select 'view ' || relname, pg_get_viewdef(oid) from ours where relkind = 'v'
    union all select 'index ' || relname, pg_get_indexdef(oid) from ours where relkind in ('i', 'I') and relname !~ '^kysely_'
    union all select 'function ' || oid::regprocedure::text, pg_get_functiondef(oid) from pg_proc
      where pronamespace = any(current_schemas(false)::regnamespace[])
    union all select 'trigger ' || tgname || ' of ' || relname, pg_get_triggerdef(pg_trigger.oid)
      from pg_trigger join ours on ours.oid = tgrelid where not tgisinternal
    order by 1`.execute(db);
  const hash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 12);
  return Object.fromEntries(rows.map(({ name, text }) => [name, hash(text)]));
}
