import { sql } from "kysely";
import { type Database, liveSchema } from "./database.ts";

const role = "tapedeck_analyst";

export type AnalystGrant = "granted" | "refused";

/**
 * Lets the role tapedeck_analyst read the schema and nothing else. With a password it may log in; without one it is a
 * role to grant to others. A role belongs to the whole server, so several databases (and queries that start at the same
 * time) share it. "refused": our own user may not make roles; whoever may has to.
 */
export async function grantAnalyst({ db, schema }: Database, password: string | undefined): Promise<AnalystGrant> {
  try {
    await sql`do $$ begin
      if not exists (select from pg_roles where rolname = ${sql.lit(role)}) then
        create role ${sql.id(role)} nologin;
      end if;
    exception when duplicate_object or unique_violation then null; end $$`.execute(db);
    await db.transaction().execute(async (tx) => {
      // Two that alter a role at once get "tuple concurrently updated".
      await sql`select pg_advisory_xact_lock(hashtext(${role}))`.execute(tx);
      const statements = [
        sql`alter role ${sql.id(role)} ${password === undefined ? sql`nologin` : sql`login password ${sql.lit(password)}`}`,
        sql`alter role ${sql.id(role)} set default_transaction_read_only = on`,
        sql`alter role ${sql.id(role)} set search_path = ${sql.id(liveSchema)}`,
        sql`grant usage on schema ${sql.id(schema)} to ${sql.id(role)}`,
        sql`grant select on all tables in schema ${sql.id(schema)} to ${sql.id(role)}`,
        sql`alter default privileges in schema ${sql.id(schema)} grant select on tables to ${sql.id(role)}`,
      ];
      for (const statement of statements) await statement.execute(tx);
      // Everybody may make temporary tables by default.
      await sql`do $$ begin
        execute format('revoke temporary on database %I from public', current_database());
        execute format('grant connect on database %I to ${sql.raw(role)}', current_database());
      end $$`.execute(tx);
    });
    return "granted";
  } catch (error) {
    if (isRefusal(error)) return "refused";
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "42501";
}
