import type { FindEventsRequest, FindEventsResponse, ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { earlierOf, justBefore, laterOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { formatPosition, parsePosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { readConsistently } from "../db/read.ts";
import { key, text } from "../db/text.ts";
import { blockOf } from "../views/events/blocks.ts";
import { eventPositions } from "../views/events/positions.ts";
import { allOf, anyOf, ofSource, type SqlCondition } from "./conditions.ts";
import type { ApiDeps } from "./deps.ts";
import { order, type Search, type SearchRange, searchAll, searchBranches } from "./event-search.ts";
import { pageOf } from "./page.ts";
import { notProjected } from "./reach.ts";

/** More branches than this are not looked into one by one. */
const maxBranches = 1_500;

export async function findEvents(deps: ApiDeps, request: FindEventsRequest): Promise<FindEventsResponse> {
  const { filter } = request;
  if (filter === undefined) throw invalidArgument("filter is missing", "filter");
  const [after, until] = [offsetIn(request.after, "after"), offsetIn(request.until, "until")];
  return readConsistently(deps.database(), deps.workspace, async (tx, checkpoint) => {
    // Until a rebuild has ended, the tables of an earlier version don't have all positions.
    const isIndexed = checkpoint?.projection.split(" ").includes(`${eventPositions.name}.${eventPositions.version}`);
    if (checkpoint === undefined || isIndexed !== true) throw notProjected();
    const search = { after, until, limit: pageOf(filter).limit, newest: request.newest };
    const [indexed, setAside] = await Promise.all([
      findPositions(tx, filter, search),
      setAsidePositions(tx, filter.workspace, search),
    ]);
    const found = nearest([...indexed, ...setAside], search);
    const { epoch } = checkpoint;
    return {
      positions: found.map((offset) => formatPosition({ epoch, offset })),
      reached: formatPosition({ epoch, offset: checkpoint.position }),
    };
  });
}

/**
 * The events that the index lacks because they could not be applied to the tables. Any of them may match: who reads them
 * applies the filter.
 * @throws TapedeckError not_ready when not all of them are listed, so that the log has to be searched
 */
async function setAsidePositions(
  tx: Tx,
  workspace: string,
  { after, until, limit, newest }: SearchRange,
): Promise<readonly Offset[]> {
  const ofWorkspace = sql`workspace = ${key(workspace)}`;
  const { rows } = await sql<{ position: Offset | null }>`
    (select position from set_aside_events where ${ofWorkspace} and position > ${after} and position <= ${until}
      order by position ${order({ newest })} limit ${limit})
    union all
    (select null from set_aside_sources where ${ofWorkspace} and unlisted_first_position <= ${until}
      and unlisted_last_position > ${after} limit 1)`.execute(tx);
  return rows.map(({ position }) => {
    if (position === null) throw notProjected();
    return position;
  });
}

/** Those of the positions that are wanted, in the order of the log. */
function nearest(positions: readonly Offset[], { limit, newest }: SearchRange): readonly Offset[] {
  const ascending = positions.toSorted((a, b) => a - b);
  return newest ? ascending.slice(-limit) : ascending.slice(0, limit);
}

function offsetIn(position: string, field: string): Offset {
  const parsed = parsePosition(position);
  if (parsed === undefined) throw invalidArgument(`"${position}" is not a position`, field);
  return parsed.offset;
}

/** Positions in the order of the log. `branches`: how many are looked into one by one; more are searched together. */
export async function findPositions(
  tx: Tx,
  filter: ListRequest,
  range: SearchRange,
  branches = maxBranches,
): Promise<readonly Offset[]> {
  const inOrder = readInOrder(tx);
  const workspace = text(filter.workspace);
  const subjects = [...new Set(filter.subjects.map(key))];
  const chosen = chosenGroups(filter, range);
  if (filter.sessions.length > 0) {
    const [firstBlock] = await Promise.all([blockOf(tx, workspace, range.after), inOrder]);
    const search = { ...range, workspace, subjects, firstBlock };
    return searchBranches(tx, ofSessions(filter.sessions.map(text), chosen), { ...search, by: "session" });
  }
  const [extent] = await Promise.all([extentOf(tx, workspace, chosen, range), inOrder]);
  if (extent.groups === 0) return [];
  const within = {
    ...range,
    workspace,
    subjects,
    firstBlock: extent.firstBlock ?? range.after,
    after: laterOf(range.after, justBefore(extent.first)),
    until: earlierOf(range.until, extent.last),
  };
  if (subjects.length > 0) {
    if (extent.groups * subjects.length > branches) return searchAll(tx, chosen, within);
    const ofSubjects = sql`
      select t.id, requested.name from event_groups t cross join unnest(${subjects}::text[]) as requested (name) where ${chosen}`;
    return searchBranches(tx, ofSubjects, { ...within, by: "subject" });
  }
  return ofGroups(tx, chosen, { ...extent, branches }, within);
}

/**
 * Every search reads an index in its order and stops when it has enough. Postgres prefers to read all and sort it where it
 * knows too little of a table: after a rebuild, or of what was recorded since it looked last.
 */
async function readInOrder(tx: Tx): Promise<void> {
  await sql`select set_config('enable_bitmapscan', 'off', true)`.execute(tx);
}

type Extent = {
  readonly groups: number;
  readonly first: Offset;
  readonly last: Offset;
  /** Groups that reach over the near end of the range. */
  readonly over: number;
  /** Where the nearest group ends that is not among the nearest ones; null: all are. */
  readonly nextEnd: Offset | null;
  /** Where the block begins that has the range's first event of these groups; null: before all blocks. */
  readonly firstBlock: Offset | null;
};

/** The groups that the filter chooses and that have events in the range. */
function chosenGroups(filter: ListRequest, { after, until }: SearchRange): SqlCondition {
  return allOf([
    ...ofSource(filter),
    kindsOf(filter.kinds),
    anyOf(sql`t.outcome`, filter.outcomes),
    sql`t.first_position <= ${until} and t.last_position > ${after}`,
  ]);
}

async function extentOf(tx: Tx, workspace: string, chosen: SqlCondition, range: SearchRange): Promise<Extent> {
  const [isOver, end] = [over(range), nearEnd(range)];
  const { rows } = await sql<Extent>`
    with chosen as materialized (select first_position, last_position from event_groups t where ${chosen})
    select count(*) as groups, coalesce(min(first_position), 0) as first, coalesce(max(last_position), 0) as last,
      count(*) filter (where ${isOver}) as over,
      (select ${end} from chosen where not ${isOver} order by ${end} ${order(range)} offset ${range.limit} limit 1)
        as "nextEnd",
      (select b.first_position from event_blocks b
        where b.workspace = ${workspace} and b.first_position <= greatest(${range.after}, (select min(first_position) from chosen))
        order by b.first_position desc limit 1) as "firstBlock"
    from chosen`.execute(tx);
  return rows[0] ?? { groups: 0, first: logStart, last: logStart, over: 0, nextEnd: null, firstBlock: null };
}

/**
 * Only the groups that reach over the near end of the range, or end nearest to it, can have what is wanted: each has an
 * event at its end. Where that event was erased this may be wrong, and all groups are searched.
 */
async function ofGroups(
  tx: Tx,
  chosen: SqlCondition,
  { groups, over: reaching, nextEnd, branches }: Extent & { readonly branches: number },
  search: Search,
): Promise<readonly Offset[]> {
  const { limit, newest } = search;
  if (reaching + limit < branches) {
    const [isOver, end] = [over(search), nearEnd(search)];
    const nearest = sql`
      (select t.id, '' from event_groups t where ${chosen} and ${isOver}) union all
      (select t.id, '' from event_groups t where ${chosen} and not ${isOver} order by ${end} ${order(search)} limit ${limit})`;
    const found = await searchBranches(tx, nearest, { ...search, by: "group" });
    const farthest = newest ? found.at(0) : found.at(-1);
    const isComplete =
      farthest !== undefined &&
      found.length === limit &&
      (newest ? farthest > (nextEnd ?? 0) : farthest < (nextEnd ?? 0));
    if (nextEnd === null || isComplete) return found;
  }
  if (groups > branches) return searchAll(tx, chosen, search);
  return searchBranches(tx, sql`select t.id, '' from event_groups t where ${chosen}`, { ...search, by: "group" });
}

function over({ after, until, newest }: SearchRange): SqlCondition {
  return newest ? sql`(last_position > ${until})` : sql`(first_position <= ${after})`;
}

function nearEnd({ newest }: SearchRange): SqlCondition {
  return newest ? sql`last_position` : sql`first_position`;
}

/** The condition that `kindMatches` is in SQL. */
function kindsOf(patterns: readonly string[]): SqlCondition | undefined {
  if (patterns.length === 0 || patterns.includes("*") || patterns.includes("*.*")) return undefined;
  const isOfNoun = (pattern: string) => pattern.endsWith(".*");
  const isOfVerb = (pattern: string) => pattern.startsWith("*.");
  const choices = [
    anyOf(
      sql`t.kind`,
      patterns.filter((pattern) => !isOfNoun(pattern) && !isOfVerb(pattern)),
    ),
    anyOf(
      sql`split_part(t.kind, '.', 1)`,
      patterns.filter(isOfNoun).map((pattern) => pattern.slice(0, -2)),
    ),
    anyOf(
      sql`split_part(t.kind, '.', 2)`,
      patterns.filter(isOfVerb).map((pattern) => pattern.slice(2)),
    ),
  ];
  return sql`(${sql.join(
    choices.filter((choice) => choice !== undefined),
    sql` or `,
  )})`;
}

/** A session belongs to one source, so only the groups of that source can have events of it. */
function ofSessions(sessions: readonly string[], chosen: SqlCondition): SqlCondition {
  return sql`
    select t.id, requested.session from unnest(${[...new Set(sessions)]}::text[]) as requested (session)
    cross join lateral (
      select g.source from event_positions p join event_groups g on g.id = p.event_group
      where p.session = requested.session limit 1) as its
    join event_groups t on t.source = its.source
    where ${chosen}`;
}
