import { type ListOperationsResponse, Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import type { LogReader } from "@tapedeck/shared/log/log";
import { beyondAll, earlierOf, justBefore, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { readConsistently } from "../db/read.ts";
import type { OperationRow } from "../db/schema.ts";
import { key, plain, text } from "../db/text.ts";
import { possibleTimestampOf, timestampOf } from "../db/timestamp.ts";
import { aboutArtifacts } from "./artifacts.ts";
import { causeOf, type FailedStep } from "./cause-of.ts";
import { allOf, anyOf, between, ofSource, type SqlCondition } from "./conditions.ts";
import type { ApiDeps } from "./deps.ts";
import { endedLater, operationsAsOf } from "./operations-as-of.ts";
import { listPage, type PageBounds, pageOf } from "./page.ts";
import { areRare, rare } from "./rare-subjects.ts";
import { notProjected, reachAt, reachMinimum } from "./reach.ts";

/** Newest first. With `at`: the operations that had begun by then, as they stood. */
export async function listOperations(deps: ApiDeps, request: ListRequest): Promise<ListOperationsResponse> {
  const page = pageOf(request);
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  return readConsistently(deps.database(), deps.workspace, async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const rows =
      at === undefined
        ? await newestOperations(tx, request, page, at)
        : await newestAsOf(tx, deps.log(), { request, page, at });
    const { epoch } = checkpoint;
    const until = at ?? beyondAll;
    const [labels, steps] = await Promise.all([labelsOf(tx, rows, until), failedStepsOf(tx, rows, until)]);
    const itemOf = (row: OperationRow): Operation => ({
      ...operation(row, epoch, steps.get(row.id)),
      ...labelsAsOf(labels.get(row.id), epoch),
    });
    return {
      ...listPage(rows, page, { positionOf: (row) => row.start_position, itemOf, codec: Operation }),
      position: formatPosition({ epoch, offset: at ?? checkpoint.position }),
    };
  });
}

/** Loops that ended again after the position are among these: a later one has begun by then, or nothing has. */
const nearest = 100;

type AsOf = { readonly request: ListRequest; readonly page: PageBounds; readonly at: Offset };

/** The page's operations as they stood, and one more. */
async function newestAsOf(tx: Tx, log: LogReader, { request, page, at }: AsOf): Promise<readonly OperationRow[]> {
  const rows = await operationsAsOf(tx, log, await newestOperations(tx, request, page, at), at);
  if (request.outcomes.length === 0) return rows;
  // The index has each operation at its last outcome.
  const near = await newestOperations(tx, { ...request, outcomes: [] }, { ...page, limit: nearest }, at);
  const changed = await operationsAsOf(
    tx,
    log,
    near.filter((row) => endedLater(row, at)),
    at,
  );
  const matching = changed.filter(({ outcome }) => outcome !== null && request.outcomes.includes(outcome));
  return [...rows, ...matching].toSorted((a, b) => b.start_position - a.start_position).slice(0, page.limit + 1);
}

/** The page's operations, and one more. */
export async function newestOperations(
  tx: Tx,
  request: ListRequest,
  page: PageBounds,
  at: Offset | undefined,
): Promise<readonly OperationRow[]> {
  const ended = at === undefined ? sql`t.outcome is not null` : sql`t.end_position <= ${at}`;
  const bounds = await startedIn(tx, request);
  const inPage = justBefore(page.before);
  const newest = earlierOf(bounds.last, at ?? beyondAll);
  // The newest of a source are the same on every page.
  const last = request.per_source > 0 ? newest : earlierOf(newest, inPage);
  const ofLabels = await sessionsWithLabels(tx, request);
  const artifacts = await aboutArtifacts(tx, request, at);
  const own = allOf([
    anyOf(sql`t.session`, request.sessions),
    ofLabels && sql`t.session = any(${ofLabels}::text[])`,
    artifacts.condition,
    subjects(request.subjects.map(key)),
    ...between(began, request),
    ofNumber(sql`t.runner`, request.runner),
    ofNumber(sql`t.loop`, request.loop),
    ...labelled(request),
    request.outcomes.length === 0 ? undefined : ended,
    sql`t.start_position between ${bounds.first} and ${last}`,
  ]);
  const filter = { ofSource: allOf(ofSource(request)), own };
  const isOfFew = request.sessions.length > 0 || ofLabels !== undefined || artifacts.isRare;
  const isNarrow = isOfFew || (isSet(request.subjects) && (await areRare(tx, request.subjects)));
  const hasFilter = [request.developers, request.projects, request.upstreams, request.sources].some(isSet);
  const isOfKind = [request.kinds, request.outcomes].some(isSet);
  const isPlain = isNarrow || !(hasFilter || isOfKind);
  const all =
    request.per_source > 0
      ? ofEachSource(request, filter, isNarrow, inPage)
      : isPlain
        ? plainly(request, filter, isNarrow)
        : byBranch(request, filter, hasFilter, page);
  const { rows } = await sql<OperationRow>`${all} order by t.start_position desc limit ${page.limit + 1}`.execute(tx);
  return rows;
}

type Conditions = { readonly ofSource: SqlCondition; readonly own: SqlCondition };

/** With few candidates all of them are read, and not the index in the order of the list, which may pass all others first. */
function plainly(request: ListRequest, { ofSource, own }: Conditions, isNarrow: boolean): SqlCondition {
  const conditions = allOf([ofSource, own, anyOf(sql`t.kind`, request.kinds), anyOf(sql`t.outcome`, request.outcomes)]);
  const filter = sql`select t.* from operations t where ${conditions}`;
  return isNarrow ? sql`select * from (${filter} offset 0) as t` : filter;
}

/**
 * Each source (or the workspace), kind and outcome is a branch of an index, in the order of the list. Only the branches with
 * the newest operations, and in each the newest ones, can be in the page.
 */
function byBranch(
  request: ListRequest,
  { ofSource, own }: Conditions,
  bySource: boolean,
  { limit }: PageBounds,
): SqlCondition {
  const ofBranch = inBranch(bySource ? sql`t.source` : sql`t.workspace`, own);
  const places = bySource
    ? sql`select t.source from sources t where ${ofSource}`
    : sql`select ${text(request.workspace)}`;
  return sql`
    ${branches(request, places)},
    near as materialized (
      select b.*, newest.start_position from branch b cross join lateral (
        select t.start_position from operations t where ${ofBranch} order by t.start_position desc limit 1) as newest
      order by newest.start_position desc limit ${limit + 1})
    select t.* from near b cross join lateral (
      select t.* from operations t where ${ofBranch} and t.start_position >= (
        select case when count(*) > ${limit} then min(start_position) else 0 end from near)
      order by t.start_position desc limit ${limit + 1}) as t`;
}

/** The newest `per_source` of each source, as far as they are in the page. */
function ofEachSource(request: ListRequest, filter: Conditions, isNarrow: boolean, inPage: Offset): SqlCondition {
  const max = request.per_source;
  const candidates = isNarrow ? plainly(request, filter, isNarrow) : newestOfBranches(request, filter);
  return sql`
    select t.* from (
      select t.*, row_number() over (partition by t.source order by t.start_position desc) as nth
      from (${candidates}) as t) as t
    where t.nth <= ${max} and t.start_position <= ${inPage}`;
}

/** The newest `per_source` of each source, kind and outcome. */
function newestOfBranches(request: ListRequest, { ofSource, own }: Conditions): SqlCondition {
  return sql`
    ${branches(request, sql`select t.source from sources t where ${ofSource}`)}
    select t.* from branch b cross join lateral (
      select t.* from operations t where ${inBranch(sql`t.source`, own)}
      order by t.start_position desc limit ${request.per_source}) as t`;
}

/** Every place with every kind of operation that there is, and every outcome: "with recursive …, branch as (…)". */
function branches(request: ListRequest, places: SqlCondition): SqlCondition {
  const outcomes = request.outcomes.length === 0 ? ["", ...allOutcomes] : request.outcomes;
  return sql`
    with recursive known (kind) as (
      (select kind from operations where workspace = ${text(request.workspace)} order by kind limit 1)
      union all
      select (select kind from operations where workspace = ${text(request.workspace)} and kind > known.kind order by kind limit 1)
      from known where known.kind is not null),
    branch as (
      select place.name as place, k.kind, o.outcome
      from (${places}) as place (name)
      cross join (select kind from known t where kind is not null and ${anyOf(sql`t.kind`, request.kinds) ?? sql`true`}) as k
      cross join unnest(${outcomes}::text[]) as o (outcome))`;
}

function inBranch(place: SqlCondition, own: SqlCondition): SqlCondition {
  return sql`${place} = b.place and t.kind = b.kind and coalesce(t.outcome, '') = b.outcome and ${own}`;
}

const allOutcomes = ["succeeded", "failed", "canceled", "unknown"];

const began = sql`coalesce(t.started_at, t.ended_at)`;

/** Where in the log the operations of the range began, if that is known: the list is in the order of the log. */
async function startedIn(tx: Tx, request: ListRequest): Promise<{ readonly first: Offset; readonly last: Offset }> {
  const everything = { first: logStart, last: beyondAll };
  const limits = between(began, request).filter((limit) => limit !== undefined);
  if (limits.length === 0) return everything;
  // The end of a range determines how many later ones are skipped, and so whether an index is worth reading.
  const max = request.to === undefined ? sql`limit ${rare}` : sql``;
  const { rows } = await sql<{ count: number; first: Offset | null; last: Offset | null }>`
    select count(*), min(start_position) as first, max(start_position) as last from (
      select t.start_position from operations t where ${allOf([sql`t.workspace = ${text(request.workspace)}`, ...limits])}
      ${max}) as t`.execute(tx);
  const { count = 0, first = null, last = null } = rows[0] ?? {};
  if (request.to === undefined && count === rare) return everything;
  return { first: first ?? logStart, last: last ?? logStart };
}

/** Compares the labels of the loop when it began, else those of its session, as the statistics do. */
function labelled({ labels }: ListRequest): readonly (SqlCondition | undefined)[] {
  if (Object.keys(labels).length === 0) return [];
  return [
    sql`${plain(labels)}::jsonb <@ (
      select case when c.labels is null then s.labels else jsonb_strip_nulls(s.labels || c.labels) end
      from sessions s left join loop_labels c on (c.session, c.runner, c.loop) = (t.session, t.runner, t.loop)
      where s.session = t.session)`,
  ];
}

/** More sessions than this are not worth reading one by one. */
const fewSessions = 100;

/** The sessions that had each of the labels at some time, where there are few; undefined: there are many, or no label. */
async function sessionsWithLabels(tx: Tx, { workspace, labels }: ListRequest): Promise<readonly string[] | undefined> {
  const [first, ...others] = Object.entries(labels).map(
    ([name, value]) => sql`(
      select session from sessions where workspace = ${text(workspace)} and labels @> ${plain({ [name]: value })}::jsonb
      union select l.session from session_labels l join sessions s using (session)
      where s.workspace = ${text(workspace)} and l.labels @> ${plain({ [name]: value })}::jsonb)`,
  );
  if (first === undefined) return undefined;
  const { rows } = await sql<{ session: string }>`
    ${sql.join([first, ...others], sql` intersect `)} limit ${fewSessions + 1}`.execute(tx);
  return rows.length > fewSessions ? undefined : rows.map(({ session }) => session);
}

/** With a session before it, an index by runner and loop has few others. A number may be larger than the column's. */
function ofNumber(column: SqlCondition, number: number | undefined): SqlCondition | undefined {
  return number === undefined ? undefined : sql`${column} = ${number}::bigint`;
}

function isSet(values: readonly string[]): boolean {
  return values.length > 0;
}

/** A command matches by its name and by its job's id, as in an event filter. */
function subjects(names: readonly string[]): SqlCondition | undefined {
  const own = anyOf(sql`t.subject`, names);
  if (own === undefined) return undefined;
  return sql`((t.subject <> '' and ${own}) or (t.instance <> '' and ${anyOf(sql`t.instance`, names)}))`;
}

type LoopLabels = {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>> | null;
  /** Where the change was recorded. */
  readonly position: Offset | null;
};

/** The labels of the loops among the operations when they began, by id, as far as they were recorded at that offset. */
async function labelsOf(tx: Tx, rows: readonly OperationRow[], at: Offset): Promise<ReadonlyMap<string, LoopLabels>> {
  const loops = rows.filter(({ kind }) => kind === "loop");
  if (loops.length === 0) return new Map();
  const { rows: found } = await sql<LoopLabels>`
    select o.id, jsonb_strip_nulls(coalesce(s.labels, '{}') || coalesce(c.labels, '{}')) as labels, c.position
    from unnest(${loops.map(({ id }) => id)}::text[]) as requested (id) join operations o using (id)
    left join sessions s using (session)
    left join lateral (
      select l.labels, l.position from session_labels l
      where l.session = o.session and (l.at, l.ns) <= (o.started_at, o.started_ns) and l.position <= ${at}
      order by l.at desc, l.ns desc, l.position desc limit 1) as c on true`.execute(tx);
  return new Map(found.map((row) => [row.id, row]));
}

function labelsAsOf({ labels, position }: Partial<LoopLabels> = {}, epoch: string) {
  return {
    labels: { ...labels },
    labels_position: position == null ? "" : formatPosition({ epoch, offset: position }),
  };
}

/** The steps that had failed first in the loops among the operations, by the loops' ids. */
export async function failedStepsOf(
  tx: Tx,
  rows: readonly OperationRow[],
  at = beyondAll,
): Promise<ReadonlyMap<string, FailedStep>> {
  const failed = rows.filter(({ kind, reason }) => kind === "loop" && reason !== "");
  if (failed.length === 0) return new Map();
  // A loop has the cause of one of its steps. Times come first, because positions follow them only within a stream.
  const { rows: found } = await sql<FailedStep & { readonly id: string }>`
    select l.id, step.phase, step.subject, step.tries
    from unnest(
      ${failed.map(({ id }) => id)}::text[], ${failed.map(({ cause }) => cause)}::text[],
      ${failed.map(({ reason }) => reason)}::text[]) as listed (id, cause, reason)
    join operations l using (id), lateral (
      select o.kind as phase, o.subject, (
          select count(*)::int from operations t
          where t.session = o.session and t.runner = o.runner and t.loop = o.loop and t.kind = o.kind and t.subject = o.subject
            and t.outcome = 'failed' and not t.injected and t.end_position <= ${at}) as tries
      from operations o
      where o.session = l.session and o.runner = l.runner and o.loop = l.loop and o.kind <> 'loop' and o.outcome = 'failed'
        and not o.injected and o.end_position <= ${at} and (o.cause, o.reason) = (listed.cause, listed.reason)
      order by o.ended_at, o.ended_ns, o.end_position limit 1) step`.execute(tx);
  return new Map(found.map(({ id, ...step }) => [id, step]));
}

function operation(row: OperationRow, epoch: string, step?: FailedStep) {
  const isOver = row.end_position !== null;
  return {
    id: row.id,
    source: row.source,
    session: row.session,
    runner: row.runner,
    loop: row.loop,
    kind: row.kind,
    subject: row.subject,
    started_at: possibleTimestampOf(row.started_at, row.started_ns),
    ended_at: isOver ? timestampOf(row.ended_at, row.ended_ns) : undefined,
    duration_ms: isOver && row.duration_ms !== null ? BigInt(row.duration_ms) : undefined,
    outcome: isOver ? (row.outcome ?? "") : "",
    error_code: isOver ? row.error_code : "",
    error: isOver ? row.error : "",
    cause: isOver ? causeOf(row, step) : undefined,
    cache_hit: row.cache_hit,
    start_position: formatPosition({ epoch, offset: row.start_position }),
    end_position: isOver ? formatPosition({ epoch, offset: row.end_position ?? logStart }) : "",
    platform: row.platform,
    instance: row.instance,
    exit_code: isOver && row.exit_code !== null ? row.exit_code : undefined,
  };
}
