import { isSecretName, isTrivial } from "../secret-name.ts";
import type { TextSpan } from "../span.ts";

/** `token%3Dabc`, `%3Ftoken%3Dabc%26`, `%22password%22%3A%22abc%22`: parts of an address or a form inside another one. */
const name =
  /(?:%(?:3F|26|22|27|7B|2C|3B|20|0A|5B)|(?<![\w.%-]))([A-Za-z][\w.-]{1,60})(?:%22|%27|%5D)?(?:%20)?%3[AD](?:%20)?(?:%22|%27)?/gi;
const value = /(?:[^%\s&"'`<>\\]|%(?!22|26|27|2C|7D|3B|23|0A|20)[0-9A-F]{2}){3,500}/iy;

export function encodedAssignments(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  if (!text.includes("%3")) return spans;
  for (const { index, 0: whole, 1: found = "" } of text.matchAll(name)) {
    value.lastIndex = index + whole.length;
    if (value.lastIndex < (spans.at(-1)?.end ?? 0) || !isSecretName(found)) continue;
    const start = value.lastIndex;
    const visible = value.exec(text)?.[0];
    if (visible !== undefined && !isTrivial(visible)) spans.push({ start, end: start + visible.length });
  }
  return spans;
}
