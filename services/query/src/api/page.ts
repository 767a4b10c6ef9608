import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { largestPage } from "@tapedeck/shared/largest-page";
import { beyondAll, type Offset, storedOffset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { Tx } from "../db/database.ts";
import { readConsistently } from "../db/read.ts";
import type { ApiDeps } from "./deps.ts";
import { notProjected, reachAt, reachMinimum } from "./reach.ts";

const defaultLimit = 100;

/** Lists start at the newest item. A page starts before the last position of the previous page. */
export type PageBounds = { readonly before: Offset; readonly limit: number };

/** What a list reflects. `at`: the past moment that was asked for. */
type Moment = {
  readonly tx: Tx;
  readonly epoch: string;
  readonly at: Offset | undefined;
  readonly position: Offset;
};

type List<Row, Item> = {
  /** The page's rows, and one more. */
  readonly read: (page: PageBounds, moment: Moment) => Promise<readonly Row[]>;
  readonly positionOf: (row: Row) => Offset;
  readonly items: (rows: readonly Row[], moment: Moment) => Promise<Item[]>;
};

export async function answerPage<Row, Item>(
  deps: ApiDeps,
  request: ListRequest,
  { read, positionOf, items }: List<Row, Item>,
): Promise<{ items: Item[]; next_page: string; position: string }> {
  const page = pageOf(request);
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  return readConsistently(deps.database(), async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const { epoch } = checkpoint;
    const position = at ?? checkpoint.position;
    const moment = { tx, epoch, at, position };
    const { rows, next_page } = cut(await read(page, moment), page, positionOf);
    return { items: await items(rows, moment), next_page, position: formatPosition({ epoch, offset: position }) };
  });
}

export function pageOf({ limit, page }: { readonly limit: number; readonly page: string }): PageBounds {
  return {
    before: page === "" ? beyondAll : positionIn(page),
    limit: Math.min(limit || defaultLimit, largestPage),
  };
}

/** Cuts rows that were read with a limit of one more than the page's. */
function cut<Row>(
  rows: readonly Row[],
  { limit }: PageBounds,
  positionOf: (row: Row) => Offset,
): { readonly rows: readonly Row[]; readonly next_page: string } {
  const kept = rows.slice(0, limit);
  const last = kept.at(-1);
  const next_page = rows.length > limit && last !== undefined ? tokenFor(positionOf(last)) : "";
  return { rows: kept, next_page };
}

function tokenFor(position: Offset): string {
  return Buffer.from(`older than ${position}`).toString("base64url");
}

function positionIn(page: string): Offset {
  const found = /^older than (\d{1,16})$/.exec(Buffer.from(page, "base64url").toString())?.[1];
  if (found === undefined) {
    throw invalidArgument(`page "${page}" is not the next page of a list`, "page");
  }
  return storedOffset(Number(found));
}
