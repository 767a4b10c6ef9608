import type { TextSpan } from "../span.ts";
import { ownShapes } from "./own-shapes.ts";
import type { Run, TokenShape } from "./token-shape.ts";
import { tokenTable } from "./token-table.ts";

type Matcher = { readonly pattern: RegExp; readonly near: readonly string[] };

const shapes: readonly TokenShape[] = [...ownShapes, ...tokenTable];

/** The prefixes of all shapes. Their first four characters decide whether to search for tokens at all. */
export const tokenPrefixes: readonly string[] = [...new Set(shapes.map(({ parts: [prefix] }) => prefix))];

/** Keyed by the first three characters of the prefix, as the shortest has three. */
const matchers = new Map<string, Matcher[]>();
for (const shape of shapes) {
  const start = shape.parts[0].slice(0, 3);
  matchers.set(start, [...(matchers.get(start) ?? []), { pattern: patternOf(shape), near: shape.near }]);
}

/** Finds tokens by their own shapes. `places`: positions at which one may begin, in order. Time is linear in their number. */
export function tokenSecrets(text: string, places: readonly number[]): TextSpan[] {
  const spans: TextSpan[] = [];
  let searched = 0;
  for (const start of places) {
    if (start < searched) continue;
    let end = start;
    for (const { pattern, near } of matchers.get(text.slice(start, start + 3)) ?? []) {
      pattern.lastIndex = start;
      if (!pattern.test(text) || pattern.lastIndex <= end) continue;
      if (near.length === 0 || isNear(text, start, near)) end = pattern.lastIndex;
    }
    if (end === start) continue;
    spans.push({ start, end });
    searched = end;
  }
  return spans;
}

/** The beginning of a token, up to the end of the text, without its prefix. Undefined: there is none at this position. */
export function unfinishedToken(text: string, place: number): TextSpan | undefined {
  const prefix = tokenPrefixes.find((one) => text.startsWith(one, place));
  if (prefix === undefined || /[0-9A-Za-z_]/.test(text.charAt(place - 1))) return undefined;
  const start = place + prefix.length;
  const rest = text.slice(start);
  if (rest === "" || rest.length > 500 || !/^[\w+/=.~-]+$/.test(rest)) return undefined;
  const isCertain = /[^0-9A-Za-z]/.test(prefix);
  return isCertain || (rest.length >= 4 && /\d/.test(rest)) ? { start, end: text.length } : undefined;
}

function isNear(text: string, at: number, words: readonly string[]): boolean {
  const before = text.slice(Math.max(0, at - 80), at).toLowerCase();
  return words.some((word) => before.includes(word));
}

function patternOf({ parts, alone }: TokenShape): RegExp {
  const [prefix, ...rest] = parts;
  const pieces = rest.map((part, index) =>
    typeof part === "string" ? literal(part) : run(part, !alone && index === rest.length - 1),
  );
  const [before, after] = alone ? ["(?<![0-9A-Za-z_])", "(?![0-9A-Za-z])"] : ["", ""];
  return new RegExp(before + literal(prefix) + pieces.join("") + after, "y");
}

/** `open`: the last run of a token that need not stand alone goes as far as its characters do. */
function run([alphabet, least, max]: Run, open: boolean): string {
  return `[${alphabet}]{${least},${open || max >= 1_000 ? "" : max}}`;
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
