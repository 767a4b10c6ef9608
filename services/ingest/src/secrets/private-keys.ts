import type { TextSpan } from "./span.ts";

const begins = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d{1,4}/g;

/** Finds private keys, without the lines around them. A key that is cut off goes to the end of the text. */
export function privateKeys(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  let searched = 0;
  for (const { index, 0: begin } of text.matchAll(begins)) {
    if (index < searched) continue;
    const start = index + begin.length;
    const end = text.indexOf(begin.startsWith("P") ? "Private-MAC" : "-----END", start);
    searched = end < 0 ? text.length : end;
    spans.push({ start, end: searched });
  }
  return spans;
}
