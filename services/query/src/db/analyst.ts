import { type RawBuilder, sql } from "kysely";
import { type Database, liveSchema } from "./database.ts";

const role = "tapedeck_analyst";

export type AnalystGrant = "granted" | "refused";

/**
 * Lets the role tapedeck_analyst read the schema and nothing else. With a password it may log in; without one it is a
 * role to grant to others. A role belongs to the whole server, so several databases (and queries that start at the same
 * time) share it. "refused": our own user may not make roles; whoever may has to.
 */
export async function grantAnalyst({ db, schema }: Database, password: string | undefined): Promise<AnalystGrant> {
  const made = await allowed(async () => {
    await sql`do $$ begin
      if not exists (select from pg_roles where rolname = ${sql.lit(role)}) then
        create role ${sql.id(role)} nologin;
      end if;
    exception when duplicate_object or unique_violation then null; end $$`.execute(db);
    await inOneGo(db, [
      sql`alter role ${sql.id(role)} ${password === undefined ? sql`nologin` : sql`login password ${sql.lit(password)}`}`,
      sql`alter role ${sql.id(role)} set default_transaction_read_only = on`,
      sql`alter role ${sql.id(role)} set search_path = ${sql.id(liveSchema)}`,
    ]);
  });
  const { rows } = await sql`select from pg_roles where rolname = ${role}`.execute(db);
  if (rows.length === 0) return "refused";
  const granted = await allowed(() =>
    inOneGo(db, [
      sql`grant usage on schema ${sql.id(schema)} to ${sql.id(role)}`,
      sql`grant select on all tables in schema ${sql.id(schema)} to ${sql.id(role)}`,
      sql`alter default privileges in schema ${sql.id(schema)} grant select on tables to ${sql.id(role)}`,
      // Everybody may make temporary tables by default.
      sql`do $$ begin
        execute format('revoke temporary on database %I from public', current_database());
        execute format('grant connect on database %I to ${sql.raw(role)}', current_database());
      end $$`,
    ]),
  );
  return made && granted ? "granted" : "refused";
}

/** Two that alter a role at once get "tuple concurrently updated". */
async function inOneGo(db: Database["db"], statements: readonly RawBuilder<unknown>[]): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(hashtext(${role}))`.execute(tx);
    for (const statement of statements) await statement.execute(tx);
  });
}

async function allowed(attempt: () => Promise<void>): Promise<boolean> {
  try {
    await attempt();
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "42501";
}
