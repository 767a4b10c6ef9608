import { ownValue } from "@tapedeck/shared/own-value";
import type { DeveloperVisibility } from "@tapedeck/shared/service/common-settings";
import { type Kysely, type RawBuilder, sql } from "kysely";
import { type Database, liveSchema } from "../database.ts";
import { makeOnce, privateTable } from "../private.ts";
import type { Schema } from "../schema.ts";
import type { ReaderLimits } from "./limits.ts";
import { closeLeaks, restrictPublic } from "./public-rights.ts";
import { readable } from "./relations.ts";
import { allowed, analyst, exists, limitRole, makeRoles, reader } from "./roles.ts";
import { areDevelopersHidden, dropTeamViews, makeTeamViews, rememberHidden } from "./team-views.ts";
import { logins } from "./workspace-logins.ts";

/**
 * Creates the roles and lets them read a schema: the analyst all of it, other readers the rows of their workspace; where
 * developers are hidden, readers those of their developer, the analyst none, and both the sums of teams. `developers`: the setting;
 * absent: as it was when the database's readers were let in last. Returns what this database user may not do.
 */
export async function letReadersIn(database: Database, developers?: DeveloperVisibility): Promise<readonly string[]> {
  const made = await makeRoles(database);
  const roles = (
    await Promise.all([analyst, reader].map(async (role) => ((await exists(database.db, role)) ? role : [])))
  ).flat();
  const granted = await allowed(() => makeOnce(database.db, () => grant(database, roles, developers)));
  return [
    ...(made ? [] : [`the roles ${analyst} and ${reader}: create them as a superuser`]),
    ...(granted ? [] : [`what ${analyst} may read: this database user does not own the tables`]),
  ];
}

export type ReaderLogins = {
  /** Whether their rows are those of everybody. */
  readonly developers: DeveloperVisibility;
  /** Without a password the analyst is a role that can only be granted to logins. */
  readonly analystPassword: string | undefined;
  readonly limits: ReaderLimits;
};

/**
 * Sets the analyst's password and every login's limits, and revokes from PUBLIC the rights that let readers do more than
 * read. Returns what this database user may not do.
 */
export async function limitReaders(
  database: Database,
  { analystPassword, limits }: Omit<ReaderLogins, "developers">,
): Promise<readonly string[]> {
  const { db } = database;
  const leftOut = [...(await restrictPublic(database)), ...(await closeLeaks(database))];
  if (!(await exists(db, analyst))) return leftOut;
  if (!(await allowed(() => makeOnce(db, () => setPassword(db, analystPassword))))) {
    leftOut.push(`the password of ${analyst}`);
  }
  for (const role of [analyst, ...(await logins(database)).map(({ login: name }) => name)]) {
    leftOut.push(...(await limitRole(database, role, limits)).map((what) => `${what} of ${role}`));
  }
  return leftOut;
}

async function setPassword(db: Kysely<Schema>, password: string | undefined): Promise<void> {
  if (password !== undefined) {
    await sql`alter role ${sql.id(analyst)} login password ${sql.lit(password)}`.execute(db);
    return;
  }
  const { rows } = await sql`select from pg_roles where rolname = ${analyst} and rolcanlogin`.execute(db);
  if (rows.length > 0) await sql`alter role ${sql.id(analyst)} nologin`.execute(db);
}

type Relation = {
  readonly name: string;
  readonly isInvoker: boolean;
  readonly isRowSecure: boolean;
  readonly policies: readonly string[];
  /** The roles of Tapedeck that may read it. */
  readonly readers: readonly string[];
};

async function grant(
  { db, schema }: Database,
  roles: readonly string[],
  developers: DeveloperVisibility | undefined,
): Promise<void> {
  if (roles.length === 0) return;
  await db.transaction().execute(async (tx) => {
    const areHidden = developers === undefined ? await areDevelopersHidden(tx) : developers !== "shown";
    if (developers !== undefined) await rememberHidden(tx, areHidden);
    // The views of another set of tables come with its swap.
    if (schema === liveSchema) await (areHidden ? makeTeamViews(tx, roles) : dropTeamViews(tx));
    for (const role of roles) await grantAccess(tx, schema, role);
    for (const relation of await relations(tx, schema, roles)) {
      const table = sql.table(`${schema}.${relation.name}`);
      const kind = ownValue(readable, relation.name);
      const expected = kind === undefined ? [] : roles;
      for (const role of relation.readers.filter((name) => !expected.includes(name))) {
        await sql`revoke all on ${table} from ${sql.id(role)}`.execute(tx);
      }
      if (kind === "view" && !relation.isInvoker) {
        await sql`alter view ${table} set (security_invoker = true)`.execute(tx);
      }
      if (kind === "workspace" || kind === "source") await restrictRows(tx, schema, relation, { roles, areHidden });
      for (const role of expected.filter((name) => !relation.readers.includes(name))) {
        await sql`grant select on ${table} to ${sql.id(role)}`.execute(tx);
      }
    }
  });
}

/** Issues only the missing grants, because a standby query calls this often. */
async function grantAccess(tx: Kysely<Schema>, schema: string, role: string): Promise<void> {
  const { rows } = await sql<{ database: string; connects: boolean; uses: boolean; getsNew: boolean }>`
    select current_database() as database, has_database_privilege(${role}, current_database(), 'connect') as connects,
      has_schema_privilege(${role}, ${schema}, 'usage') as uses,
      exists (select from pg_default_acl, aclexplode(defaclacl) join pg_roles r on r.oid = grantee
        where defaclnamespace = ${schema}::regnamespace and rolname = ${role}) as "getsNew"`.execute(tx);
  const [now] = rows;
  if (now === undefined) return;
  const [name, inSchema] = [sql.id(role), sql.id(schema)];
  if (!now.connects) await sql`grant connect on database ${sql.id(now.database)} to ${name}`.execute(tx);
  if (!now.uses) await sql`grant usage on schema ${inSchema} to ${name}`.execute(tx);
  if (now.getsNew)
    await sql`alter default privileges in schema ${inSchema} revoke select on tables from ${name}`.execute(tx);
}

/** Row security does not apply to the owner, so it does not affect what Tapedeck itself reads and writes. */
async function restrictRows(
  tx: Kysely<Schema>,
  schema: string,
  { name, isRowSecure, policies }: Relation,
  { roles, areHidden }: { readonly roles: readonly string[]; readonly areHidden: boolean },
): Promise<void> {
  const table = sql.table(`${schema}.${name}`);
  const workspace = ownValue(readable, name) === "workspace" ? sql`workspace` : sql`split_part(source, '/', 1)`;
  // A subquery is evaluated once and not for every row.
  const ofWorkspace = sql`${workspace} = (select ${privateTable("reader_workspace")}())`;
  // A workspace itself is no developer's.
  const ofDeveloper =
    name === "workspaces" ? sql`true` : sql`${developerOf(name)} = (select ${privateTable("reader_developer")}())`;
  const known = {
    [analyst]: { role: analyst, isHiding: false, rows: sql`true` },
    [reader]: { role: reader, isHiding: false, rows: ofWorkspace },
    // Without a policy the analyst has no rows.
    [`${reader}_own`]: { role: reader, isHiding: true, rows: sql`${ofWorkspace} and ${ofDeveloper}` },
  };
  for (const [policy, { role, isHiding, rows }] of Object.entries(known)) {
    const isThere = policies.includes(policy);
    if (isThere && isHiding !== areHidden) await sql`drop policy ${sql.id(policy)} on ${table}`.execute(tx);
    if (isThere || isHiding !== areHidden || !roles.includes(role)) continue;
    await sql`create policy ${sql.id(policy)} on ${table} for select to ${sql.id(role)} using (${rows})`.execute(tx);
  }
  if (!isRowSecure) await sql`alter table ${table} enable row level security`.execute(tx);
}

/** The developer of a row; null, which no login has, where a table has neither developer nor source. */
function developerOf(name: string): RawBuilder<unknown> {
  if (name === "changed_build_days" || name === "expired_builds") return sql`null::text`;
  return name === "build_days" ? sql`developer` : sql`split_part(source, '/', 2)`;
}

async function relations(db: Kysely<Schema>, schema: string, roles: readonly string[]): Promise<readonly Relation[]> {
  const { rows } = await sql<Relation>`
    select relname as name, relrowsecurity as "isRowSecure",
      coalesce(reloptions @> array['security_invoker=true'], false) as "isInvoker",
      array(select polname::text from pg_policy where polrelid = c.oid) as policies,
      array(select distinct rolname::text from aclexplode(relacl) join pg_roles r on r.oid = grantee
        where rolname = any(${[...roles]})) as readers
    from pg_class c
    where relnamespace = ${schema}::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')
    order by relname`.execute(db);
  return rows;
}
