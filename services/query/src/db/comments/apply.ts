import { ownValue } from "@tapedeck/shared/own-value";
import { sql } from "kysely";
import type { Database } from "../database.ts";
import type { RelationComment } from "./comment.ts";
import { innerLoopComments } from "./inner-loop.ts";
import { recordedComments } from "./recorded.ts";
import { rktComments } from "./rkt.ts";
import { skaffoldComments } from "./skaffold.ts";
import { vagrantComments } from "./vagrant.ts";

/** The comments of every relation that an analyst may read. */
export const comments: Readonly<Record<string, RelationComment>> = {
  ...recordedComments,
  ...innerLoopComments,
  ...skaffoldComments,
  ...vagrantComments,
  ...rktComments,
};

export type FoundComment = {
  readonly relation: string;
  readonly isView: boolean;
  /** Empty: the comment is about the relation itself. */
  readonly column: string;
  readonly comment: string;
};

/** The comments as the database has them, empty where it has none: of each relation, then of its columns in their order. */
export async function readComments({ db, schema }: Database): Promise<readonly FoundComment[]> {
  const { rows } = await sql<FoundComment>`
    select c.relname as relation, c.relkind = 'v' as "isView", coalesce(a.attname, '') as column,
      coalesce(col_description(c.oid, a.attnum), case when a.attnum is null then obj_description(c.oid, 'pg_class') end, '')
        as comment
    from pg_class c
    join lateral (
      select attname, attnum from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
      union all select null, null) a on true
    where c.relnamespace = ${schema}::regnamespace and c.relname = any(${Object.keys(comments)}::text[])
      and c.relkind in ('r', 'p', 'v')
    order by c.relname, a.attnum nulls first`.execute(db);
  return rows;
}

/** Sets the comments that differ. They are no migration, so that a better text takes no new one. */
export async function applyComments(database: Database): Promise<void> {
  const statements = (await readComments(database)).flatMap(({ relation, isView, column, comment }) => {
    const known = ownValue(comments, relation);
    const expected = column === "" ? known?.about : ownValue(known?.columns, column);
    if (expected === undefined || expected === comment) return [];
    const what =
      column === ""
        ? sql`${sql.raw(isView ? "view" : "table")} ${sql.id(database.schema, relation)}`
        : sql`column ${sql.id(database.schema, relation, column)}`;
    return [sql`comment on ${what} is ${sql.lit(expected)}`];
  });
  if (statements.length > 0) await sql.join(statements, sql`; `).execute(database.db);
}
