import { type Kysely, type RawBuilder, sql } from "kysely";
import { type Database, internalSchema, liveSchema } from "../database.ts";
import { makeOnce, privateSchema, privateTable } from "../private.ts";
import type { Schema } from "../schema.ts";
import { settingInteger } from "../setting-integer.ts";
import type { ReaderLimits } from "./limits.ts";

/** Reads every workspace. */
export const analyst = "tapedeck_analyst";

/** Each of its members reads one workspace, or nothing. */
export const reader = "tapedeck_reader";

/**
 * Creates both roles, and the table of which login reads which workspace. A role belongs to the whole server, so several
 * databases (and queries that start at the same time) share it. False: this database user may not create roles.
 */
export async function makeRoles({ db }: Pick<Database, "db">): Promise<boolean> {
  const made = await allowed(async () => {
    for (const role of [analyst, reader]) {
      if (!(await exists(db, role))) await makeOnce(db, () => run(db, sql`create role ${sql.id(role)} nologin`));
    }
  });
  if (await exists(db, reader)) await makeOnce(db, makeWorkspaces);
  return made;
}

export async function exists(db: Kysely<Schema>, role: string): Promise<boolean> {
  const { rows } = await sql`select from pg_roles where rolname = ${role}`.execute(db);
  return rows.length > 0;
}

/** Creates a table that no reader sees, and functions that return each login its own row. */
async function makeWorkspaces(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ there: boolean }>`
    select to_regprocedure(${`${privateSchema}.reader_developer()`}) is not null and exists (
      select from pg_proc where oid = to_regprocedure(${`${privateSchema}.reader_workspace()`}) and prosrc like '%removed%'
    ) as there`.execute(db);
  if (rows[0]?.there === true) return;
  // A workspace that was removed has no rows for its readers, although they are still being deleted.
  const isThere = `not exists (select from ${internalSchema(liveSchema)}.checkpoint c where c.workspace = l.workspace and c.removed)`;
  const ownColumn = (column: string) => [
    // session_user is the login and not the role that it has set: a login cannot use a workspace of another login.
    sql`create or replace function ${privateTable(`reader_${column}`)}() returns text
      language sql stable security definer parallel safe set search_path = pg_catalog
      as ${sql.lit(`select ${column} from ${privateSchema}.workspace_logins l where login = session_user and ${isThere}`)}`,
    sql`revoke execute on function ${privateTable(`reader_${column}`)}() from public`,
    sql`grant execute on function ${privateTable(`reader_${column}`)}() to ${sql.id(reader)}`,
  ];
  await db.transaction().execute(async (tx) => {
    for (const statement of [
      // There may be no tables yet.
      sql`set local check_function_bodies = off`,
      sql`create schema if not exists ${sql.id(privateSchema)}`,
      sql`create table if not exists ${privateTable("workspace_logins")} (
        login name primary key,
        workspace text not null,
        created_at timestamptz not null default now()
      )`,
      sql`alter table ${privateTable("workspace_logins")} add column if not exists developer text`,
      ...ownColumn("workspace"),
      ...ownColumn("developer"),
      sql`grant usage on schema ${sql.id(privateSchema)} to ${sql.id(reader)}`,
    ]) {
      await statement.execute(tx);
    }
  });
}

/**
 * Sets a login's limits in this database, and returns those that this database user may not set. A role can lift all of
 * its own limits except the number of connections and the temporary files: see watchReaders.
 */
export async function limitRole(
  { db }: Pick<Database, "db">,
  role: string,
  limits: ReaderLimits,
): Promise<readonly string[]> {
  const leftOut: string[] = [];
  const { rows } = await sql<{ connections: number; settings: readonly string[] | null; database: string }>`
    select rolconnlimit as connections, setconfig as settings, datname as database
    from pg_roles cross join pg_database
      left join pg_db_role_setting on setrole = pg_roles.oid and setdatabase = pg_database.oid
    where rolname = ${role} and datname = current_database()`.execute(db);
  const [now] = rows;
  if (now === undefined) return leftOut;
  const change = async (what: string, statement: RawBuilder<unknown>) => {
    if (!(await allowed(() => makeOnce(db, () => run(db, statement))))) leftOut.push(what);
  };
  const connections = settingInteger(limits.connections);
  if (now.connections !== connections) {
    const limit = sql.lit(connections);
    await change("connection limit", sql`alter role ${sql.id(role)} connection limit ${limit}`);
  }
  const set = new Set(now.settings ?? []);
  const settings = { ...settingsOf(limits), ...(role === analyst ? {} : withoutIndexes) };
  const { rows: known } = await sql<{ name: string }>`
    select name from pg_settings where name = any(${Object.keys(settings)})`.execute(db);
  for (const [name, value] of Object.entries(settings)) {
    if (set.has(`${name}=${value}`) || !known.some((setting) => setting.name === name)) continue;
    const inDatabase = sql`alter role ${sql.id(role)} in database ${sql.id(now.database)}`;
    await change(name, sql`${inDatabase} set ${sql.id(name)} = ${sql.lit(value)}`);
  }
  return leftOut;
}

/** A login of one workspace looks up no row by an index (see closeLeaks), and Postgres does not expect that. */
const withoutIndexes: Readonly<Record<string, string>> = { enable_nestloop: "off" };

function settingsOf(limits: ReaderLimits): Readonly<Record<string, string>> {
  return {
    search_path: liveSchema,
    default_transaction_read_only: "on",
    statement_timeout: `${settingInteger(limits.statementMs)}ms`,
    idle_in_transaction_session_timeout: `${settingInteger(limits.idleTransactionMs)}ms`,
    transaction_timeout: `${settingInteger(limits.transactionMs)}ms`,
    lock_timeout: `${settingInteger(limits.lockMs)}ms`,
    temp_file_limit: `${settingInteger(Math.ceil(limits.tempBytes / 1024))}kB`,
  };
}

/** False: this database user lacks the privilege. */
export async function allowed(attempt: () => Promise<void>): Promise<boolean> {
  try {
    await attempt();
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "42501") return false;
    throw error;
  }
}

export async function run(db: Kysely<Schema>, statement: RawBuilder<unknown>): Promise<void> {
  await statement.execute(db);
}
