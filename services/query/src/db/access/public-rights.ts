import { type Kysely, sql } from "kysely";
import type { Database } from "../database.ts";
import { makeOnce } from "../private.ts";
import type { Schema } from "../schema.ts";
import { allowed, run } from "./roles.ts";

/** Functions that take locks beyond a statement, write large objects, or write to the server's own log. */
const functions =
  "^(pg_(try_)?advisory_|lo_|loread$|lowrite$|pg_logical_emit_message$|pg_create_restore_point$|pg_export_snapshot$)";

/**
 * Revokes from PUBLIC, and so from every reader, what Postgres lets everybody do in a database: temporary tables, tables
 * in `public`, advisory locks, large objects. Does so only in a database that Tapedeck does not share, because other
 * applications may rely on these rights, and revokes the functions only as a superuser, who owns them. Returns the rights
 * that remain.
 */
export async function restrictPublic({ db }: Pick<Database, "db">): Promise<readonly string[]> {
  if (await isShared(db)) {
    return [
      "what PUBLIC may do, because others have tables in this database: readers can take advisory locks and write large objects",
    ];
  }
  const done = await allowed(async () => {
    await run(
      db,
      sql`do $$ begin
        execute format('revoke temporary on database %I from public', current_database());
        if to_regnamespace('public') is not null then revoke create on schema public from public; end if;
      end $$`,
    );
  });
  const leftOut = done ? [] : ["temporary tables, which PUBLIC may make here"];
  const open = await openFunctions(db);
  if (open.length === 0) return leftOut;
  if (!(await isSuperuser(db))) {
    return [...leftOut, "advisory locks and large objects, which only a superuser can take from PUBLIC"];
  }
  await run(db, sql`revoke execute on function ${sql.raw(open.join(", "))} from public`);
  return leftOut;
}

async function isShared(db: Kysely<Schema>): Promise<boolean> {
  const { rows } = await sql`
    select from pg_class c join pg_namespace n on n.oid = relnamespace
    where relkind in ('r', 'p', 'v', 'm', 'f') and nspname !~ '^(pg_|information_schema$|tapedeck)'
      and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
    limit 1`.execute(db);
  return rows.length > 0;
}

/** The functions that PUBLIC may still call, as "name(types)". */
async function openFunctions(db: Kysely<Schema>): Promise<readonly string[]> {
  const { rows } = await sql<{ signature: string }>`
    select p.oid::regprocedure::text as signature from pg_proc p
    where pronamespace = 'pg_catalog'::regnamespace and proname ~ ${functions}
      and exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)`.execute(db);
  return rows.map(({ signature }) => signature);
}

/**
 * Marks every function as one that may not see rows before row security has let them pass. Postgres takes its own
 * comparisons for leakproof, and so searches an index by a reader's condition before it applies the policy: what it then
 * removed, read and estimated shows what other workspaces have. It concerns nobody whom no policy restricts, and takes no
 * right from others in this database. Done at each start, as a restored database has Postgres' own functions anew. Returns
 * what is left open.
 */
export async function closeLeaks({ db }: Pick<Database, "db">): Promise<readonly string[]> {
  const { rows } = await sql`select from pg_proc where proleakproof limit 1`.execute(db);
  if (rows.length === 0) return [];
  if (!(await isSuperuser(db))) return [leaks];
  const close = sql`do $$ declare leakproof regprocedure; begin
    for leakproof in select oid::regprocedure from pg_proc where proleakproof loop
      execute format('alter function %s not leakproof', leakproof);
    end loop;
  end $$`;
  await makeOnce(db, () => run(db, close));
  return [];
}

const leaks =
  "names of other workspaces, which EXPLAIN lets logins of one workspace guess: only a superuser can close that";

export async function isSuperuser(db: Kysely<Schema>): Promise<boolean> {
  const { rows } = await sql<{ is: boolean }>`
    select rolsuper as is from pg_roles where rolname = current_user`.execute(db);
  return rows[0]?.is === true;
}
