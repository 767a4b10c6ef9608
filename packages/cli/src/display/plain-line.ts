import { terminalText } from "@tapedeck/shared/output/terminal-text";

/** A text in one line: what tools write into their texts must not move the cursor or colour the terminal. */
export function plainLine(text: string): string {
  return terminalText(text.replaceAll("\r", "\n"))
    .replace(/\p{Cc}+/gu, " ")
    .trim();
}
