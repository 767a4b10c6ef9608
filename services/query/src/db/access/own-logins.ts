import { sql } from "kysely";
import type { Database } from "../database.ts";
import { makeOnce, privateTable } from "../private.ts";
import { createLogin, dropLogin, type NewLogin } from "./workspace-logins.ts";

/** A login with which query itself runs SQL for callers of one workspace. */
export type OwnLogin = { readonly user: string; readonly password: string };

/** Logins with their passwords, which only the owner of the database can read. */
const table = privateTable("own_logins");

/**
 * The login of a workspace, and of a developer where they are hidden. It is made when it is needed first, and kept in the
 * database: all queries on it use the same.
 * @throws RolesRefusedError
 * @throws LeakyPlansError
 */
export async function ownLogin(database: Database, of: Omit<NewLogin, "mayGuessNames">): Promise<OwnLogin> {
  const { workspace, developer = "" } = of;
  const { db } = database;
  await makeOnce(db, async () => {
    await sql`create table if not exists ${table} (
      workspace text, developer text, login name not null, password text not null, primary key (workspace, developer)
    )`.execute(db);
  });
  const known = async () => {
    const { rows } = await sql<OwnLogin>`
      select login as user, password from ${table} join pg_roles on rolname = login
      where workspace = ${workspace} and developer = ${developer}`.execute(db);
    return rows[0];
  };
  const found = await known();
  if (found !== undefined) return found;
  const { login, password } = await createLogin(database, of);
  // One that somebody has dropped is replaced; of two that are made at the same time the first one stays.
  const { rows: kept } = await sql`
    insert into ${table} (workspace, developer, login, password) values (${workspace}, ${developer}, ${login}, ${password})
    on conflict (workspace, developer) do update set login = excluded.login, password = excluded.password
    where not exists (select from pg_roles where rolname = own_logins.login)
    returning login`.execute(db);
  if (kept.length > 0) return { user: login, password };
  await dropLogin(database, login);
  const first = await known();
  if (first === undefined) throw new Error(`the login of ${workspace} was dropped while it was made`);
  return first;
}
