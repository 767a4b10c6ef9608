import type { TextSpan } from "../span.ts";

/** How many blanks at most between a name, its separator and its value. */
const maxBlanks = 40;

export function skipBlanks(text: string, from: number): number {
  let at = from;
  while (at - from < maxBlanks && (text.charAt(at) === " " || text.charAt(at) === "\t")) at += 1;
  return at;
}

/** The text between the quotes, which may themselves be escaped (JSON inside JSON). Cut off: up to the line's end. */
export function quotedValue(text: string, at: number): TextSpan | undefined {
  const quote = /^\\?["'`]/.exec(text.slice(at, at + 2))?.[0];
  if (quote === undefined) return undefined;
  const start = at + quote.length;
  const mark = quote.at(-1);
  let end = start;
  for (; end < text.length && text.charAt(end) !== "\n"; end += 1) {
    if (text.startsWith(quote, end)) break;
    if (text.charAt(end) !== "\\") {
      if (quote.length === 2 && text.charAt(end) === mark) break;
      continue;
    }
    // An escaped character; inside escaped quotes an escaped quote takes four.
    const escaped = text.charAt(end + 1) === "\\" && text.startsWith(`\\${mark}`, end + 2) ? 3 : 1;
    end += escaped;
  }
  return { start, end: Math.min(end, text.length) };
}

/** Up to the first character that ends it; `structure`: what begins with a bracket is no value but holds some. */
export function bareValue(text: string, start: number, ends: RegExp, structure: boolean): TextSpan | undefined {
  if (structure && /[[{]/.test(text.charAt(start))) return undefined;
  let end = start;
  while (end < text.length && !ends.test(text.charAt(end))) {
    // A placeholder for a value may contain blanks and braces.
    const template =
      end === start
        ? /^(?:\{\{[^{}\n]{0,200}\}\}|\$\{[^{}\n]{0,200}\}|\$\([^()\n]{0,200}\))/.exec(text.slice(end, end + 210))
        : null;
    end += template?.[0].length ?? 1;
  }
  // A backslash before n, r, t or a quote: text inside of a string.
  return { start, end: escapeWithin(text, start, end) };
}

function escapeWithin(text: string, start: number, end: number): number {
  const at = text.slice(start, end + 1).search(/\\[nrt"']/);
  return at < 0 ? end : Math.min(end, start + at);
}

/** `password = hunter2` in a file of settings; not code, which calls or ends with a semicolon. */
export function settingValue(text: string, start: number): TextSpan | undefined {
  const value = bareValue(text, start, /\s/, true);
  return value && /[();{}]/.test(text.slice(value.start, value.end)) ? undefined : value;
}

/** In block style up to the end of the line or its comment, in flow style (after a brace or comma) up to the next one. */
export function yamlValue(text: string, nameStart: number, start: number): TextSpan | undefined {
  if (/[[{]/.test(text.charAt(start)) && text.charAt(start + 1) !== "{") return undefined;
  if (/[,{(]/.test(text.slice(Math.max(0, nameStart - 2), nameStart))) {
    const flow = bareValue(text, start, /[,}\])\n]/, true);
    return flow && { start: flow.start, end: flow.start + text.slice(flow.start, flow.end).trimEnd().length };
  }
  const line = bareValue(text, start, /[\r\n]/, false);
  if (line === undefined) return undefined;
  const content = text.slice(line.start, line.end);
  if (/^[|>][-+\d]{0,2}\s*$/.test(content)) return { start: line.end, end: endOfBlock(text, nameStart, line.end) };
  const comment = content.search(/\s#/);
  return { start: line.start, end: line.start + (comment < 0 ? content : content.slice(0, comment)).trimEnd().length };
}

/** The value of the lines that are indented deeper than the name. */
function endOfBlock(text: string, nameStart: number, from: number): number {
  const indent = nameStart - (text.lastIndexOf("\n", nameStart) + 1);
  let end = from;
  while (end < text.length) {
    const next = text.indexOf("\n", end + 1);
    const line = text.slice(end + 1, next < 0 ? text.length : next);
    if (line.trim() !== "" && line.search(/\S/) <= indent) break;
    end = next < 0 ? text.length : next;
  }
  return end;
}

/** True if the line has nothing before the name but the marks of a list, a quote or a diff. */
export function startsLine(text: string, nameStart: number): boolean {
  let at = nameStart;
  while (nameStart - at < 80 && /[ \t+~|>"'-]/.test(text.charAt(at - 1))) at -= 1;
  const before = text.slice(Math.max(0, at - 2), at);
  return at === 0 || /(?:[\n{,([;]|\\n)$/.test(before);
}

export type Name = TextSpan & {
  readonly text: string;
  readonly isFlag: boolean;
  /** The quote right before the value, `\"` included. */
  readonly quote: string;
};
