import { HistoryItem, type SearchResponse } from "@tapedeck/proto/tapedeck/v1/lists";
import type { HistoryRequest, ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { largestPage } from "@tapedeck/shared/largest-page";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { readConsistently } from "../../db/read.ts";
import type { HistoryRow } from "../../db/schema.ts";
import { text } from "../../db/text.ts";
import { type TagField, tag } from "../../views/history/row.ts";
import { unitOfText } from "../../views/history/unit.ts";
import { allOf, anyOf, between, ofSource, type SqlCondition } from "../conditions.ts";
import type { ApiDeps } from "../deps.ts";
import { defaultLimit, itemsThatFit } from "../page.ts";
import { notProjected, reachMinimum } from "../reach.ts";
import { type FoundUnit, historyItems } from "./items.ts";

/** Up to so many matches are counted. */
const maxCounted = 2_000;
/** The newest items are looked at before any index: up to this many. */
const maxNear = 5_000;

/** The newest first, by when each began. Items that match are counted where a text is searched for. */
export async function search(deps: ApiDeps, request: HistoryRequest): Promise<SearchResponse> {
  const { filter, text: searched } = request;
  if (filter === undefined) throw invalidArgument("filter is missing", "filter");
  assertSearchable(searched);
  const limit = Math.min(filter.limit || defaultLimit, largestPage);
  const before = filter.page === "" ? undefined : cursorIn(filter.page);
  await reachMinimum(deps, filter.min_position);
  return readConsistently(deps.database(), deps.workspace, async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const found = await find(tx, request, { before, limit: limit + 1 });
    const items = await historyItems(
      tx,
      found.rows.slice(0, limit),
      { text: searched, pattern: pattern(searched) },
      checkpoint,
    );
    const page = itemsThatFit(items, HistoryItem);
    const last = found.rows[page.length - 1];
    const isLast = found.rows.length <= page.length || last === undefined;
    return {
      items: page,
      next_page: isLast ? "" : cursorOf(last),
      position: formatPosition({ epoch: checkpoint.epoch, offset: checkpoint.position }),
      total: searched === "" ? undefined : found.matches,
      total_is_minimum: searched !== "" && found.isMinimum === true,
    };
  });
}

/** An index finds what has three letters or digits in a row. */
function assertSearchable(searched: string): void {
  if (searched === "" || /[\p{L}\p{N}]{3}/u.test(searched)) return;
  throw invalidArgument("a search needs at least three letters or digits in a row", "q");
}

/** A row's place in the list. */
type Cursor = Pick<HistoryRow, "at" | "start_position" | "unit">;
type Page = { readonly before: Cursor | undefined; readonly limit: number };

async function find(
  tx: Tx,
  { filter, text: searched, reasons }: HistoryRequest,
  page: Page,
): Promise<{ readonly rows: readonly FoundUnit[]; readonly matches: number; readonly isMinimum?: boolean }> {
  if (filter === undefined) return { rows: [], matches: 0 };
  const ofUnits = [
    tagged(filter, "kind", filter.kinds),
    tagged(filter, "outcome", filter.outcomes),
    tagged(filter, "reason", reasons),
    tagged(filter, "artifact", filter.artifacts),
    ...Object.entries(filter.labels).map(([name, value]) => tagged(filter, "label", [`${name}=${value}`])),
    anyOf(sql`t.session`, filter.sessions),
  ].filter((condition) => condition !== undefined);
  const sources = await sourcesOf(tx, filter);
  const ofSources = sources && anyOf(sql`t.source`, sources);
  const conditions = allOf([
    sql`t.workspace = ${text(filter.workspace)}`,
    ...between(sql`t.at`, filter),
    ofSources,
    ...ofUnits,
  ]);
  if (sources?.length === 0) return { rows: [], matches: 0 };
  const like = pattern(searched);
  const listed = { sources, page };
  if (like === undefined && ofUnits.length === 0) return { rows: await inOrder(tx, conditions, listed), matches: 0 };
  const matching = allOf([conditions, like === undefined ? undefined : hasText(like)]);
  const near = await newestOf(tx, filter, matching);
  if (near.length >= page.limit) {
    const isFirst = page.before === undefined;
    const rows = isFirst ? near.slice(0, page.limit) : await inOrder(tx, matching, listed);
    return { rows, matches: Math.min(near.length, maxCounted), isMinimum: true };
  }
  const all = await candidatesOf(tx, { conditions, sources, like, isNarrow: ofUnits.length > 0 });
  if (all.length > maxCounted)
    return { rows: await inOrder(tx, matching, listed), matches: maxCounted, isMinimum: true };
  return { rows: all.filter((row) => isBefore(row, page.before)).slice(0, page.limit), matches: all.length };
}

/** The sources that are asked for; undefined: all. */
async function sourcesOf(tx: Tx, filter: ListRequest): Promise<readonly string[] | undefined> {
  const { developers, projects, upstreams, sources } = filter;
  if ([developers, projects, upstreams, sources].every(({ length }) => length === 0)) return undefined;
  const { rows } = await sql<{ source: string }>`
    select t.source from sources t where ${allOf(ofSource(filter))}`.execute(tx);
  return rows.map(({ source }) => source);
}

/**
 * The matches among the newest items, where there are more items than that: with a page full of them, no index need say how
 * many there are.
 */
async function newestOf(tx: Tx, filter: ListRequest, matching: SqlCondition): Promise<readonly FoundUnit[]> {
  const inTime = allOf([sql`t.workspace = ${text(filter.workspace)}`, ...between(sql`t.at`, filter)]);
  const { rows } = await sql<FoundUnit>`
    select ${columns} from (select * from history t where ${inTime} ${order} limit ${maxNear} offset 0) t
    where ${matching} and exists (select from history t where ${inTime} offset ${maxNear} limit 1) ${order}`.execute(
    tx,
  );
  return rows;
}

/** In a row itself, or in the output of what failed in it. Not by `exists`, for which Postgres may read all outputs first. */
function hasText(like: string): SqlCondition {
  return sql`(t.text ilike ${like} or (
    select true from failed_outputs f where f.session = t.session and f.unit = t.unit and f.text ilike ${like} limit 1))`;
}

type Candidates = {
  readonly conditions: SqlCondition;
  readonly sources: readonly string[] | undefined;
  readonly like: string | undefined;
  /** The filter alone may leave few. */
  readonly isNarrow: boolean;
};

/** All matches in their order where they are few; else some, and more than are counted. */
async function candidatesOf(tx: Tx, candidates: Candidates): Promise<readonly FoundUnit[]> {
  // Otherwise Postgres may expect many matches, and pass all rows in their order to find the few that there are.
  await byIndexes(tx, true);
  try {
    const { conditions, sources, like, isNarrow } = candidates;
    const filtered = sql`select ${columns} from history t where ${conditions} limit ${maxCounted + 1}`;
    const byFilter = isNarrow || like === undefined ? (await sql<FoundUnit>`${filtered}`.execute(tx)).rows : undefined;
    if (byFilter !== undefined && (like === undefined || byFilter.length <= maxCounted))
      return ofRows(tx, byFilter, like);
    const max = sql`limit ${maxCounted + 1}`;
    const ofSources = sources === undefined ? sql`true` : sql`f.source = any(${[...sources]}::text[])`;
    const { rows } = await sql<FoundUnit>`
      select * from (
        (select ${columns} from history t where ${conditions} and t.text ilike ${like} ${max}) union
        (select ${columns} from failed_outputs f join history t using (session, unit)
          where f.text ilike ${like} and ${ofSources} and ${conditions} ${max}) union
        (select ${columns} from events e join history t on t.session = e.session and t.unit = ${unitOfText}
          where ${textWith(like)} and ${conditions} ${max})) as t ${order} ${max}`.execute(tx);
    return rows;
  } finally {
    await byIndexes(tx, false);
  }
}

/** The condition is that of an index. Without query.textRows there are no such events. */
function textWith(like: string | undefined): SqlCondition {
  return sql`e.kind in ('log.written', 'terminal.written') and (e.detail ->> 'text') collate "C" ilike ${like}`;
}

/** Those of the rows that have the text, in their order. */
async function ofRows(tx: Tx, found: readonly FoundUnit[], like: string | undefined): Promise<readonly FoundUnit[]> {
  const keys = sql`unnest(${found.map(({ session }) => session)}::text[], ${found.map(({ unit }) => unit)}::text[])`;
  const all = sql`select ${columns} from ${keys} as requested (session, unit) join history t using (session, unit)`;
  const inEvents = sql`(
    select true from events e where e.session = t.session and ${textWith(like)} and ${unitOfText} = t.unit limit 1)`;
  const condition = like === undefined ? sql`true` : sql`(${hasText(like)} or ${inEvents})`;
  return (await sql<FoundUnit>`${all} where ${condition} ${order}`.execute(tx)).rows;
}

async function byIndexes(tx: Tx, isOn: boolean): Promise<void> {
  const names = ["enable_seqscan", "enable_indexscan", "enable_indexonlyscan"];
  await sql`select set_config(name, ${isOn ? "off" : "on"}, true) from unnest(${names}::text[]) as name`.execute(tx);
}

const columns = sql`t.session, t.unit, t.kind, t.id, t.outcome, t.at, t.start_position`;
const order = sql`order by t.at desc, t.start_position desc, t.unit desc`;

type Listed = {
  readonly sources: readonly string[] | undefined;
  readonly page: Page;
};

/** From the newest one on, in each source where some are named. */
async function inOrder(
  tx: Tx,
  conditions: SqlCondition,
  { sources, page: { before, limit } }: Listed,
): Promise<readonly FoundUnit[]> {
  const isAfter =
    before &&
    sql`(t.at, t.start_position, t.unit) < (${before.at}::timestamptz, ${before.start_position}, ${before.unit})`;
  const from = (condition: SqlCondition | undefined) =>
    sql`select ${columns} from history t where ${allOf([condition, conditions, isAfter])} ${order} limit ${limit}`;
  const rows =
    sources === undefined
      ? from(undefined)
      : sql`
        select t.* from unnest(${[...sources]}::text[]) as s (source)
        cross join lateral (${from(sql`t.source = s.source`)}) t ${order} limit ${limit}`;
  return (await sql<FoundUnit>`${rows}`.execute(tx)).rows;
}

function tagged({ workspace }: ListRequest, field: TagField, values: readonly string[]): SqlCondition | undefined {
  if (values.length === 0) return undefined;
  return sql`t.tags ?| ${values.map((value) => tag(text(workspace), field, text(value)))}::text[]`;
}

/** The text anywhere. */
function pattern(searched: string): string | undefined {
  return searched === "" ? undefined : `%${text(searched).replace(/[\\%_]/g, "\\$&")}%`;
}

function isBefore(row: Cursor, before: Cursor | undefined): boolean {
  if (before === undefined) return true;
  if (row.at !== before.at) return row.at < before.at;
  if (row.start_position !== before.start_position) return row.start_position < before.start_position;
  return row.unit < before.unit;
}

function cursorOf({ at, start_position, unit }: Cursor): string {
  return Buffer.from(JSON.stringify([at, start_position, unit])).toString("base64url");
}

const seconds = 19; // characters of a time, up to its second

/** Whether Postgres reads the time as well: `2026-02-30` and the year 0 are none. Throws for what is no time at all. */
function isTime(at: unknown): at is string {
  if (typeof at !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z$/.test(at) || at < "0001") return false;
  return new Date(at).toISOString().slice(0, seconds) === at.slice(0, seconds);
}

function cursorIn(page: string): Cursor {
  try {
    const [at, start_position, unit] = JSON.parse(Buffer.from(page, "base64url").toString());
    if (isTime(at) && Number.isSafeInteger(start_position) && typeof unit === "string") {
      return { at, start_position, unit: text(unit) };
    }
  } catch {
    // Reported below.
  }
  throw invalidArgument(`page "${page}" is not the next page of a search`, "page");
}
