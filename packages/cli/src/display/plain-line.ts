import { stripVTControlCharacters } from "node:util";

/** A text in one line: what tools write into their texts must not move the cursor or colour the terminal. */
export function plainLine(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\p{Cc}+/gu, " ")
    .trim();
}
