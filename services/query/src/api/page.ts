import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { largestPage } from "@tapedeck/shared/largest-page";
import { beyondAll, type Offset, storedOffset } from "@tapedeck/shared/log/offset";

export const defaultLimit = 100;

/** Lists start at the newest item. A page starts before the last position of the previous page. */
export type PageBounds = { readonly before: Offset; readonly limit: number };

export function pageOf({ limit, page }: { readonly limit: number; readonly page: string }): PageBounds {
  return {
    before: page === "" ? beyondAll : positionIn(page),
    limit: Math.min(limit || defaultLimit, largestPage),
  };
}

/** gRPC's libraries accept messages of 4 MiB by default: a client that gets a larger page can't read on. */
const maxPageBytes = 4 * 1024 * 1024 - 64 * 1024;
/** Tag and length of an item in its list. */
const itemHeadBytes = 6;

export type PageItems<Row, Item> = {
  readonly positionOf: (row: Row) => Offset;
  readonly itemOf: (row: Row) => Item;
  readonly codec: { encode(item: Item): { finish(): Uint8Array } };
};

/**
 * The page of rows that were read with a limit of one more than the page's. It ends early where more items would be too large
 * for a message. One item always fits, because its texts are bounded.
 */
export function listPage<Row, Item>(
  rows: readonly Row[],
  { limit }: PageBounds,
  { positionOf, itemOf, codec }: PageItems<Row, Item>,
): { readonly items: Item[]; readonly next_page: string } {
  const items = itemsThatFit(
    rows.slice(0, limit).map((row) => itemOf(row)),
    codec,
  );
  const last = rows[items.length - 1];
  const next_page = rows.length > items.length && last !== undefined ? tokenFor(positionOf(last)) : "";
  return { items, next_page };
}

/** The first of the items, as many as a message takes. */
export function itemsThatFit<Item>(all: Iterable<Item>, codec: PageItems<never, Item>["codec"]): Item[] {
  const items: Item[] = [];
  let bytes = 0;
  for (const item of all) {
    bytes += codec.encode(item).finish().byteLength + itemHeadBytes;
    if (bytes > maxPageBytes && items.length > 0) break;
    items.push(item);
  }
  return items;
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
