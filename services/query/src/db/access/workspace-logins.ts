import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { type Database, liveSchema } from "../database.ts";
import { privateSchema, privateTable } from "../private.ts";
import type { ReaderLimits } from "./limits.ts";
import { closeLeaks } from "./public-rights.ts";
import { allowed, limitRole, makeRoles, reader, run } from "./roles.ts";

/** Reads what belongs to one workspace. */
export type WorkspaceLogin = {
  /** Does not contain the workspace, because every role can see the names of all roles. */
  readonly login: string;
  readonly workspace: string;
  /** The one whose rows it sees where developers are hidden; null: none. */
  readonly developer: string | null;
  /** RFC 3339. */
  readonly createdAt: string;
};

/** Plans of a login of one workspace would show what others have, and this database user may not close that. */
export class LeakyPlansError extends Error {
  override readonly name = "LeakyPlansError";

  constructor() {
    super(
      "EXPLAIN would let this login guess names of other workspaces, and only a superuser of Postgres can close that",
    );
  }
}

/** This database user may not create roles. */
export class RolesRefusedError extends Error {
  override readonly name = "RolesRefusedError";
}

export type NewLogin = {
  readonly workspace: string;
  readonly developer?: string | undefined;
  readonly limits: ReaderLimits;
  /** It is made also where its plans would show which names other workspaces have. */
  readonly mayGuessNames?: boolean;
};

/**
 * Creates a login that reads one workspace. `leftOut`: limits that this database user may not set.
 * @throws RolesRefusedError
 * @throws LeakyPlansError
 */
export async function createLogin(
  database: Database,
  { workspace, developer, limits, mayGuessNames = false }: NewLogin,
): Promise<WorkspaceLogin & { readonly password: string; readonly leftOut: readonly string[] }> {
  const isOpen = (await closeLeaks(database)).length > 0;
  const login = `${reader}_${randomBytes(4).toString("hex")}`;
  const password = randomBytes(18).toString("base64url");
  const { db } = database;
  let createdAt = "";
  const made = await allowed(async () => {
    await makeRoles(database);
    createdAt = await db.transaction().execute(async (tx) => {
      await sql`create role ${sql.id(login)} login password ${sql.lit(password)} in role ${sql.id(reader)}`.execute(tx);
      if (isOpen && !mayGuessNames) throw new LeakyPlansError();
      const { rows } = await sql<{ createdAt: string }>`
        insert into ${privateTable("workspace_logins")} (login, workspace, developer) values (${login}, ${workspace}, ${developer ?? null})
        returning created_at as "createdAt"`.execute(tx);
      return rows[0]?.createdAt ?? "";
    });
  });
  if (!made) {
    throw new RolesRefusedError(
      "this database user may not make roles (CREATEROLE): ask the administrator of this Postgres",
    );
  }
  return {
    login,
    workspace,
    developer: developer ?? null,
    createdAt,
    password,
    leftOut: await limitRole(database, login, limits),
  };
}

/** Whether anything was recorded in a workspace, as far as the tables know. There may be no tables yet. */
export async function isRecorded({ db }: Pick<Database, "db">, workspace: string): Promise<boolean> {
  const { rows: there } = await sql<{ there: boolean }>`
    select to_regclass(${`${liveSchema}.sources`}) is not null as there`.execute(db);
  if (there[0]?.there !== true) return false;
  const sources = db.selectFrom("sources").select("workspace").where("workspace", "=", workspace);
  return (await sources.limit(1).execute()).length > 0;
}

/** Oldest first. */
export async function logins({ db }: Pick<Database, "db">): Promise<readonly WorkspaceLogin[]> {
  const { rows: there } = await sql<{ there: boolean }>`
    select to_regclass(${`${privateSchema}.workspace_logins`}) is not null as there`.execute(db);
  if (there[0]?.there !== true) return [];
  const { rows } = await sql<WorkspaceLogin>`
    select login, workspace, developer, created_at as "createdAt"
    from ${privateTable("workspace_logins")} join pg_roles on rolname = login order by created_at`.execute(db);
  return rows;
}

/** Ends the login's connections and removes it. Undefined: no login has that name. */
export async function dropLogin(database: Database, login: string): Promise<WorkspaceLogin | undefined> {
  const found = (await logins(database)).find((one) => one.login === login);
  if (found === undefined) return undefined;
  const { db } = database;
  await run(db, sql`alter role ${sql.id(login)} nologin`);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${login}`.execute(db);
  await db.transaction().execute(async (tx) => {
    await sql`drop role ${sql.id(login)}`.execute(tx);
    await sql`delete from ${privateTable("workspace_logins")} where login = ${login}`.execute(tx);
  });
  return found;
}
