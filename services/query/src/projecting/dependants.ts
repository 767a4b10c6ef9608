import { type Kysely, sql } from "kysely";
import { schemasOf } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";

/*
 * What others have made of the tables: views, materialized views, functions and foreign keys that refer to them, relations in
 * their schema, and rights on them. Postgres ties these to the tables themselves and not to their names, so they have to be
 * made again when a rebuild puts other tables in their place. A view stays the same object, with its owner, its rights and
 * whatever refers to it.
 */

/** What can't be made again on the new tables; the message names it. */
export class DependantsError extends Error {
  override readonly name = "DependantsError";
}

/** What has to be done when the tables have been replaced. */
export type Dependants = {
  /** What has to go before the tables are replaced, because its name has a type of theirs. */
  readonly dropped: readonly Dependant[];
  /** In the order in which they have to be made again. */
  readonly all: readonly Dependant[];
  /** Materialized views that have to be filled after that; see fill-views.ts. */
  readonly toFill: readonly string[];
};

type Dependant = {
  /** Its name for people, such as "view public.my_builds". */
  readonly what: string;
  readonly statements: readonly string[];
};

/**
 * The schemas of the tables that are replaced, of those that take their place, and the one that the former move to, each with
 * the internal one beside it, whose name has the same beginning.
 */
type Names = { readonly live: string; readonly shadow: string; readonly retired: string };

/** Reads it before the new tables take the place of the live ones. */
export async function readDependants(db: Kysely<Schema>, names: Names): Promise<Dependants> {
  const views = await readViews(db, names);
  const foreignKeys = await readForeignKeys(db, names);
  const moved = await readForeignRelations(db, names);
  const functions = await readFunctions(db, names);
  const rights = await readRights(db, names);
  const dropped = functions
    .filter(({ drop }) => drop !== null)
    .map(({ what, drop }) => ({ what, statements: [drop ?? ""] }));
  const all = [
    ...moved,
    ...rights,
    ...views,
    ...functions,
    // What reads another one goes before that.
    ...views.toReversed().map(({ what, then }) => ({ what, statements: then })),
    ...foreignKeys,
  ];
  return { dropped, all, toFill: views.flatMap(({ name, populated }) => (populated ? [name] : [])) };
}

/**
 * Drops what can't be there while the tables are replaced.
 * @throws DependantsError
 */
export async function dropDependants(tx: Kysely<Schema>, { dropped }: Dependants): Promise<void> {
  await execute(tx, dropped);
}

/**
 * Makes it again, in the transaction that has replaced the tables.
 * @throws DependantsError
 */
export async function renewDependants(tx: Kysely<Schema>, { all }: Dependants, retired: string): Promise<void> {
  // The body of a function may name what only its callers' search_path finds.
  await sql`set local check_function_bodies = off`.execute(tx);
  await execute(tx, all);
  const left = await readLeft(tx, retired);
  if (left.length > 0) throw refusal(left.join(", "));
}

async function execute(tx: Kysely<Schema>, dependants: readonly Dependant[]): Promise<void> {
  for (const { what, statements } of dependants) {
    for (const statement of statements) {
      try {
        await sql.raw(statement).execute(tx);
      } catch (cause) {
        // Somebody holds a lock on it: a later attempt may succeed.
        if (isLockTimeout(cause)) throw cause;
        throw refusal(`${what} (${cause instanceof Error ? cause.message : String(cause)})`, { cause });
      }
    }
  }
}

/** True when a statement waited too long for a lock that somebody else holds. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "55P03";
}

function refusal(what: string, options?: ErrorOptions): DependantsError {
  return new DependantsError(
    `the new tables can't replace the old ones, because these depend on them: ${what}. Drop them, and create them again afterwards.`,
    options,
  );
}

const anyOf = (schema: string) => sql`any(${schemasOf(schema)}::text[]::regnamespace[])`;

/** The objects of Tapedeck's own in the live schemas: those that the new ones have, too, and partitions. */
const own = ({ live, shadow }: Names) => sql`
  own as (
    select c.oid, c.reltype, c.relname from pg_class c where c.relnamespace = ${anyOf(live)} and (c.relispartition or exists (
      select from pg_class s where s.relnamespace = ${anyOf(shadow)} and s.relname = c.relname))),
  own_functions as (
    select p.oid from pg_proc p where p.pronamespace = ${anyOf(live)} and exists (
      select from pg_proc s where s.pronamespace = ${anyOf(shadow)} and s.proname = p.proname)),
  own_types as (
    select t.oid from pg_type t join own on t.oid = own.reltype or t.typelem = own.reltype where own.reltype <> 0),
  needed (classid, oid) as (
    select 'pg_class'::regclass::oid, oid from own union all select 'pg_proc'::regclass, oid from own_functions
    union all select 'pg_type'::regclass, oid from own_types),
  reading as (
    select r.ev_class as rel, d.refclassid, d.refobjid from pg_depend d join pg_rewrite r on r.oid = d.objid
    join pg_class c on c.oid = r.ev_class and c.relkind in ('v', 'm')
    where d.classid = 'pg_rewrite'::regclass and d.deptype = 'n' and r.ev_class not in (select oid from own)),
  -- A view stays the same object, so only what reads it by way of a materialized view has to be made again, too.
  affected (rel, depth) as (
    select rel, 0 from reading join needed on (refclassid, refobjid) = (needed.classid, needed.oid)
    union
    select r.rel, a.depth + 1 from affected a join pg_class m on m.oid = a.rel and m.relkind = 'm'
      join reading r on r.refclassid = 'pg_class'::regclass and r.refobjid = a.rel and r.rel <> a.rel)`;

type View = Dependant & { readonly name: string; readonly populated: boolean; readonly then: readonly string[] };

async function readViews(db: Kysely<Schema>, names: Names): Promise<readonly View[]> {
  const { rows } = await sql<View>`
    with recursive ${own(names)},
    found as (
      select c.*, quote_ident(n.nspname) || '.' || quote_ident(c.relname) as name,
        quote_ident(n.nspname) || '.tapedeck_replaced_' || c.oid as old, a.depth,
        rtrim(pg_get_viewdef(c.oid), ';') as definition, quote_ident(pg_get_userbyid(c.relowner)) as owner,
        coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '') as options
      from (select rel, max(depth) as depth from affected group by rel) a join pg_class c on c.oid = a.rel
        join pg_namespace n on n.oid = c.relnamespace)
    select name, relkind = 'm' and relispopulated as populated,
      case relkind when 'm' then 'materialized view ' else 'view ' end || name as what,
      case relkind
        when 'v' then array['create or replace view ' || name || options || ' as ' || definition]
        else array[
          'alter materialized view ' || name || ' rename to ' || split_part(old, '.', -1),
          'create materialized view ' || name || options || ' as ' || definition || ' with no data',
          'alter materialized view ' || name || ' owner to ' || owner]
          || array(select format('grant %s on %s to %s%s', privilege_type, name,
            case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end,
            case when is_grantable then ' with grant option' else '' end) from aclexplode(relacl) where grantee <> relowner)
          || array(select format('comment on %s %s is %L', case when objsubid = 0 then 'materialized view' else 'column' end,
            name || case when objsubid = 0 then '' else '.' || quote_ident(attname) end, description)
            from pg_description left join pg_attribute on attrelid = objoid and attnum = objsubid and objsubid <> 0
            where objoid = found.oid and classoid = 'pg_class'::regclass)
      end as statements,
      -- When nothing reads the old one any more.
      case relkind when 'm' then array['drop materialized view ' || old]
        || array(select pg_get_indexdef(indexrelid) from pg_index where indrelid = found.oid order by indexrelid)
      else '{}' end as then
    from found order by depth, oid`.execute(db);
  return rows;
}

/** `drop`: its arguments or its result have the type of one of our rows, so that it becomes another function. */
type FoundFunction = Dependant & { readonly drop: string | null };

async function readFunctions(db: Kysely<Schema>, names: Names): Promise<readonly FoundFunction[]> {
  const { rows } = await sql<FoundFunction>`
    with recursive ${own(names)},
    found as (
      select p.oid, p.proacl, p.proowner, bool_or(d.refclassid = 'pg_type'::regclass) as is_typed,
        quote_ident(n.nspname) || '.' || quote_ident(proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name
      from pg_depend d join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid and p.prokind in ('f', 'p', 'w')
        join pg_namespace n on n.oid = p.pronamespace
      where (exists (select from needed where (needed.classid, needed.oid) = (d.refclassid, d.refobjid))
          or (d.refclassid = 'pg_class'::regclass
            and d.refobjid in (select rel from affected join pg_class on pg_class.oid = rel where relkind = 'm')))
        and p.oid not in (select oid from own_functions)
      group by p.oid, n.nspname)
    select 'function ' || name as what, case when is_typed then 'drop routine ' || name end as drop,
      array[pg_get_functiondef(oid)] || case when not is_typed then '{}'::text[] else
        array['alter routine ' || name || ' owner to ' || quote_ident(pg_get_userbyid(proowner))]
        || array(select 'comment on function ' || name || ' is ' || quote_literal(description)
          from pg_description where objoid = oid and classoid = 'pg_proc'::regclass)
        || array(select 'revoke all on routine ' || name || ' from public' where proacl is not null)
        || array(select format('grant execute on routine %s to %s', name,
          case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end)
          from aclexplode(proacl) where grantee <> proowner) end as statements
    from found order by oid`.execute(db);
  return rows;
}

async function readForeignKeys(db: Kysely<Schema>, names: Names): Promise<readonly Dependant[]> {
  const { rows } = await sql<Dependant>`
    with recursive ${own(names)}
    select 'foreign key ' || quote_ident(conname) || ' of ' || conrelid::regclass as what, array[
      format('alter table %s drop constraint %I', conrelid::regclass, conname),
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))] as statements
    from pg_constraint
    where contype = 'f' and conparentid = 0 and confrelid in (select oid from own) and conrelid not in (select oid from own)
    order by oid`.execute(db);
  return rows;
}

/** Relations and functions that others have put into the schemas of the tables. They stay in them. */
async function readForeignRelations(db: Kysely<Schema>, names: Names): Promise<readonly Dependant[]> {
  const { live, retired } = names;
  // The name of the retired schema that holds what was in schema `n`.
  const from = sql`${retired}::text || substr(nspname, length(${live}::text) + 1)`;
  const { rows } = await sql<Dependant>`
    with recursive ${own(names)}
    select 'relation ' || quote_ident(c.relname) as what, array[
      format('alter %s %I.%I set schema %I', case relkind when 'v' then 'view' when 'm' then 'materialized view'
        when 'S' then 'sequence' when 'f' then 'foreign table' else 'table' end, ${from}, relname, nspname)] as statements
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relnamespace = ${anyOf(live)} and relkind in ('r', 'p', 'v', 'm', 'f', 'S') and c.oid not in (select oid from own)
      and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype in ('a', 'i')
        and refclassid = 'pg_class'::regclass)
    union all
    select 'function ' || quote_ident(proname), array[
      format('alter routine %I.%I(%s) set schema %I', ${from}, proname, pg_get_function_identity_arguments(p.oid), nspname)]
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where pronamespace = ${anyOf(live)} and p.oid not in (select oid from own_functions)`.execute(db);
  return rows;
}

/** Rights that others were given on our relations, and on their schemas, beside those of Tapedeck's own roles. */
async function readRights(db: Kysely<Schema>, names: Names): Promise<readonly Dependant[]> {
  const { live, shadow } = names;
  // The name of the live schema that gets what is in schema `s`.
  const to = sql`quote_ident(${live}::text || substr(s.nspname, length(${shadow}::text) + 1))`;
  const { rows } = await sql<Dependant>`
    select 'right on ' || what as what, array[format('grant %s on %s to %s%s', privilege_type, what,
      case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end,
      case when is_grantable then ' with grant option' else '' end)] as statements
    from (
      select ${to} || '.' || quote_ident(o.relname) as what, a.*
      from pg_class o join pg_class n on n.relname = o.relname and n.relnamespace = ${anyOf(shadow)}
        join pg_namespace s on s.oid = n.relnamespace, aclexplode(o.relacl) a
      where o.relnamespace = ${anyOf(live)} and a.grantee <> o.relowner and not exists (
        select from aclexplode(n.relacl) b where (b.grantee, b.privilege_type) = (a.grantee, a.privilege_type))
      union all
      select 'schema ' || ${to}, a.*
      from pg_namespace o join pg_namespace s on s.oid = ${anyOf(shadow)}
        and substr(s.nspname, length(${shadow}::text) + 1) = substr(o.nspname, length(${live}::text) + 1), aclexplode(o.nspacl) a
      where o.oid = ${anyOf(live)} and a.grantee <> o.nspowner and not exists (
        select from aclexplode(s.nspacl) b where (b.grantee, b.privilege_type) = (a.grantee, a.privilege_type))) missing`.execute(
    db,
  );
  return rows;
}

/** What still refers to the replaced tables from elsewhere, and would be dropped with them. */
async function readLeft(db: Kysely<Schema>, retired: string): Promise<readonly string[]> {
  const { rows } = await sql<{ what: string }>`
    with there as (
      select 'pg_class'::regclass::oid as classid, oid from pg_class where relnamespace = ${anyOf(retired)}
      union all select 'pg_type'::regclass, oid from pg_type where typnamespace = ${anyOf(retired)}
      union all select 'pg_proc'::regclass, oid from pg_proc where pronamespace = ${anyOf(retired)}),
    referring as (
      select distinct d.classid, d.objid, d.objsubid from pg_depend d join there on (d.refclassid, d.refobjid) = (there.classid, there.oid)
      where d.deptype in ('n', 'a') and not exists (select from there t where (t.classid, t.oid) = (d.classid, d.objid)))
    select pg_describe_object(r.classid, r.objid, r.objsubid) as what from referring r
    left join pg_rewrite w on r.classid = 'pg_rewrite'::regclass and w.oid = r.objid
    left join pg_attrdef f on r.classid = 'pg_attrdef'::regclass and f.oid = r.objid
    left join pg_constraint c on r.classid = 'pg_constraint'::regclass and c.oid = r.objid
    left join pg_trigger t on r.classid = 'pg_trigger'::regclass and t.oid = r.objid
    left join pg_policy p on r.classid = 'pg_policy'::regclass and p.oid = r.objid
    where r.classid in ('pg_class'::regclass, 'pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass,
        'pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_trigger'::regclass, 'pg_policy'::regclass)
      and coalesce(ev_class, adrelid, nullif(conrelid, 0), tgrelid, polrelid, 0) not in (
        select oid from there where classid = 'pg_class'::regclass)
    order by 1 limit 20`.execute(db);
  return rows.map(({ what }) => what);
}
