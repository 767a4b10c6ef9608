import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { largestPage } from "@tapedeck/shared/largest-page";

const defaultLimit = 100;

/** Lists start at the newest item. A page starts before the last position of the previous page. */
export type Page = { readonly before: number; readonly limit: number };

export function pageOf({ limit, page }: { readonly limit: number; readonly page: string }): Page {
  return {
    before: page === "" ? Number.MAX_SAFE_INTEGER : positionIn(page),
    limit: Math.min(limit || defaultLimit, largestPage),
  };
}

/** Cuts rows that were read with a limit of one more than the page's. */
export function cut<Row>(
  rows: readonly Row[],
  { limit }: Page,
  positionOf: (row: Row) => number,
): { readonly rows: readonly Row[]; readonly next_page: string } {
  const kept = rows.slice(0, limit);
  const last = kept.at(-1);
  const next_page = rows.length > limit && last !== undefined ? tokenFor(positionOf(last)) : "";
  return { rows: kept, next_page };
}

function tokenFor(position: number): string {
  return Buffer.from(`before ${position}`).toString("base64url");
}

function positionIn(page: string): number {
  const found = /^before (\d{1,15})$/.exec(Buffer.from(page, "base64url").toString())?.[1];
  if (found === undefined) {
    throw invalidArgument(`page "${page}" is not the next page of a list`, "page");
  }
  return Number(found);
}
