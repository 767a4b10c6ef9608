import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { largestPage } from "@tapedeck/shared/largest-page";
import { beyondAll, type Offset, storedOffset } from "@tapedeck/shared/log/offset";

const defaultLimit = 100;

/** Lists start at the newest item. A page starts before the last position of the previous page. */
export type PageBounds = { readonly before: Offset; readonly limit: number };

export function pageOf({ limit, page }: { readonly limit: number; readonly page: string }): PageBounds {
  return {
    before: page === "" ? beyondAll : positionIn(page),
    limit: Math.min(limit || defaultLimit, largestPage),
  };
}

/** Cuts rows that were read with a limit of one more than the page's. */
export function cut<Row>(
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
