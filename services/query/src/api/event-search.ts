import type { Offset } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { allOf, anyOf, type SqlCondition } from "./conditions.ts";

/** Which positions are wanted: the `limit` newest or first ones in (after, until]. */
export type SearchRange = {
  readonly after: Offset;
  readonly until: Offset;
  readonly limit: number;
  readonly newest: boolean;
};

export type Search = SearchRange & {
  readonly workspace: string;
  readonly subjects: readonly string[];
  /** No block before it has what is wanted. */
  readonly firstBlock: Offset;
};

/**
 * The positions of some branches: rows of a group, and the name of a session or a subject in it, or nothing. An index
 * has the rows of each branch by block, and each row has a position in the range. The nearest rows of the branches
 * determine in which blocks there are enough; the result is in these, in the nearest rows of each branch, and nothing
 * else is read.
 */
export async function searchBranches(
  tx: Tx,
  branches: SqlCondition,
  search: Search & { readonly by: "group" | "session" | "subject" },
): Promise<readonly Offset[]> {
  if (search.after >= search.until) return [];
  const { by, newest, until, firstBlock } = search;
  const [enough, toward] = [enoughFor(search), order(search)];
  const conditions = [
    sql`p.event_group = b.event_group`,
    by === "session" ? sql`p.session = b.name` : undefined,
    by === "subject" ? sql`p.subject = b.name` : ofSubjects(search, by),
    ...inRange(search),
  ];
  const { rows } = await sql<{ position: Offset }>`
    with near as materialized (
      select b.event_group, b.name, p.block, sum(${leastFound(search)}) over (order by p.block ${toward}) as found
      from (${branches}) as b (event_group, name)
      cross join lateral (
        select p.* from event_positions p where ${allOf(conditions)} order by p.block ${toward} limit 1) as p),
    farthest as materialized (
      select coalesce(${newest ? sql`max(block)` : sql`min(block)`} filter (where found >= ${enough}),
        ${newest ? firstBlock : until}) as block from near)
    select distinct position from near as b
    cross join lateral (
      select p.block, p.distances from event_positions p
      where ${allOf(conditions)} and p.block ${newest ? sql`>=` : sql`<=`} (select block from farthest)
      order by p.block ${toward} fetch first ${enough} rows with ties) as p
    ${positionsOf(search)}`.execute(tx);
  return ascending(rows, search);
}

/** The positions of many groups: reads all blocks from the near end of the range until there are enough. */
export async function searchAll(tx: Tx, groups: SqlCondition, search: Search): Promise<readonly Offset[]> {
  if (search.after >= search.until) return [];
  const { workspace, subjects } = search;
  const conditions = allOf([
    // Not a join because of "is true", so that rows are read in the order of the blocks and looked up in a hash table.
    sql`(p.event_group in (select t.id from event_groups t where ${groups})) is true`,
    sql`p.workspace = ${workspace}`,
    ...inRange(search),
  ]);
  const nearest = (ofSubject: SqlCondition) => sql`
    select p.block, p.distances from event_positions p where ${conditions} and ${ofSubject}
    order by p.block ${order(search)} fetch first ${enoughFor(search)} rows with ties`;
  const blocks =
    subjects.length === 0
      ? nearest(sql`not p.alias`)
      : sql`
        select p.block, p.distances from unnest(${subjects}::text[]) as requested (subject)
        cross join lateral (${nearest(sql`p.subject = requested.subject and p.subject <> ''`)}) as p`;
  const { rows } = await sql<{ position: Offset }>`
    select distinct position from (${blocks}) as p ${positionsOf(search)}`.execute(tx);
  return ascending(rows, search);
}

/** How many positions, or rows, surely have as many events as are wanted: with several subjects, an event may be found by two of them. */
function enoughFor({ limit, subjects }: Search): SqlCondition {
  return sql.lit(subjects.length > 1 ? 2 * limit : limit);
}

/** How many positions in the range a row has at least. */
function leastFound({ after, until }: SearchRange): SqlCondition {
  return sql`case when p.first_position > ${after} and p.last_position <= ${until} then cardinality(p.distances) else 1 end`;
}

/** Rows of another subject of the operation are wanted only by subject; elsewhere they would count their events twice. */
function ofSubjects({ subjects }: Search, by: "group" | "session"): SqlCondition {
  // By session not as the index of groups has it, so that Postgres can't take that index, which has all sessions.
  return anyOf(sql`p.subject`, subjects) ?? (by === "group" ? sql`not p.alias` : sql`p.alias::int = 0`);
}

/** Rows with a position in the range, or at its far end, where the search ends. */
function inRange({ after, until, firstBlock }: Search): SqlCondition[] {
  return [
    sql`p.block between ${firstBlock} and ${until}`,
    sql`p.first_position <= ${until} and p.last_position > ${after}`,
  ];
}

function positionsOf({ after, until, limit, ...range }: SearchRange): SqlCondition {
  return sql`
    cross join lateral unnest(p.distances) as d (distance)
    cross join lateral (select p.block + d.distance as position) as found
    where position > ${after} and position <= ${until}
    order by position ${order(range)} limit ${limit}`;
}

/** From the near end of the range to the far one. */
export function order({ newest }: Pick<SearchRange, "newest">): SqlCondition {
  return newest ? sql`desc` : sql`asc`;
}

function ascending(rows: readonly { readonly position: Offset }[], { newest }: SearchRange): readonly Offset[] {
  const positions = rows.map(({ position }) => position);
  return newest ? positions.toReversed() : positions;
}
