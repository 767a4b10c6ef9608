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

/** Up to so many matches are counted. More are read in the order of the list until the page is full. */
const maxCounted = 2_000;

/** The newest first, by when each began. Items that match are counted where a text is searched for. */
export async function search(deps: ApiDeps, request: HistoryRequest): Promise<SearchResponse> {
  const { filter, text: searched } = request;
  if (filter === undefined) throw invalidArgument("filter is missing", "filter");
  assertSearchable(searched);
  const limit = Math.min(filter.limit || defaultLimit, largestPage);
  const before = filter.page === "" ? undefined : cursorIn(filter.page);
  await reachMinimum(deps, filter.min_position);
  return readConsistently(deps.database(), async (tx, checkpoint) => {
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
      total: searched === "" ? undefined : Math.min(found.matches, maxCounted),
      total_is_minimum: searched !== "" && found.matches > maxCounted,
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
): Promise<{ readonly rows: readonly FoundUnit[]; readonly matches: number }> {
  if (filter === undefined) return { rows: [], matches: 0 };
  const own = [
    tagged(filter, "kind", filter.kinds),
    tagged(filter, "outcome", filter.outcomes),
    tagged(filter, "developer", filter.developers),
    tagged(filter, "project", filter.projects),
    tagged(filter, "reason", reasons),
    tagged(filter, "artifact", filter.subjects),
    ...Object.entries(filter.labels).map(([name, value]) => tagged(filter, "label", [`${name}=${value}`])),
    anyOf(sql`t.session`, filter.sessions),
  ].filter((condition) => condition !== undefined);
  const conditions = allOf([...ofSource(filter), ...between(sql`t.at`, filter), ...own]);
  const isPlain = searched === "" && own.length === 0;
  const candidates = isPlain ? undefined : await candidatesOf(tx, conditions, pattern(searched));
  if (candidates !== undefined && candidates.length <= maxCounted)
    return {
      rows: candidates.filter((row) => isBefore(row, page.before)).slice(0, page.limit),
      matches: candidates.length,
    };
  const matches = candidates?.length ?? 0;
  return { rows: await inOrder(tx, filter, { conditions, searched, page }), matches };
}

/** All matches in their order where they are few; else some, and more than are counted. */
async function candidatesOf(tx: Tx, conditions: SqlCondition, like: string | undefined): Promise<readonly FoundUnit[]> {
  // Otherwise Postgres may expect many matches, and pass all rows in their order to find the few that there are.
  await sql`select set_config(name, 'off', true) from unnest(array['enable_seqscan', 'enable_indexscan', 'enable_indexonlyscan']) as name`.execute(
    tx,
  );
  const branch = (from: SqlCondition, condition: SqlCondition) =>
    sql`(select ${columns} from ${from} where ${conditions} and ${condition} limit ${maxCounted + 1})`;
  const branches =
    like === undefined
      ? branch(sql`history t`, sql`true`)
      : sql`
        ${branch(sql`history t`, sql`t.text ilike ${like}`)} union
        ${branch(sql`failed_outputs f join history t using (session, unit)`, sql`f.text ilike ${like}`)} union
        ${branch(
          sql`events e join history t on t.session = e.session and t.unit = ${unitOfText}`,
          sql`e.kind in ('log.written', 'terminal.written') and (e.detail ->> 'text') collate "C" ilike ${like}`,
        )}`;
  const { rows } = await sql<FoundUnit>`
    select * from (${branches}) as found order by at desc, start_position desc, unit desc limit ${maxCounted + 1}`.execute(
    tx,
  );
  await sql`select set_config(name, 'on', true) from unnest(array['enable_seqscan', 'enable_indexscan', 'enable_indexonlyscan']) as name`.execute(
    tx,
  );
  return rows;
}

const columns = sql`t.session, t.unit, t.kind, t.id, t.outcome, t.at, t.start_position`;

type InOrder = { readonly conditions: SqlCondition; readonly searched: string; readonly page: Page };

/** From the newest one on, in each source where some are named. */
async function inOrder(
  tx: Tx,
  filter: ListRequest,
  { conditions, searched, page }: InOrder,
): Promise<readonly FoundUnit[]> {
  const like = pattern(searched);
  const all = allOf([
    conditions,
    like === undefined
      ? undefined
      : sql`(t.text ilike ${like} or exists (
          select from failed_outputs f where f.session = t.session and f.unit = t.unit and f.text ilike ${like}))`,
    page.before === undefined
      ? undefined
      : sql`(t.at, t.start_position, t.unit) < (${page.before.at}::timestamptz, ${page.before.start_position}, ${page.before.unit})`,
  ]);
  const order = sql`order by t.at desc, t.start_position desc, t.unit desc limit ${page.limit}`;
  const isOfSources = [filter.developers, filter.projects, filter.upstreams, filter.sources].some(
    ({ length }) => length > 0,
  );
  const rows = isOfSources
    ? sql`
      select t.* from (select t.source from sources t where ${allOf(ofSource(filter))}) s cross join lateral (
        select ${columns} from history t where t.source = s.source and ${all} ${order}) t ${order}`
    : sql`select ${columns} from history t where ${all} ${order}`;
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

const timeForm = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function cursorIn(page: string): Cursor {
  try {
    const [at, start_position, unit] = JSON.parse(Buffer.from(page, "base64url").toString());
    if (timeForm.test(at) && Number.isSafeInteger(start_position) && typeof unit === "string") {
      return { at, start_position, unit: text(unit) };
    }
  } catch {
    // Reported below.
  }
  throw invalidArgument(`page "${page}" is not the next page of a search`, "page");
}
