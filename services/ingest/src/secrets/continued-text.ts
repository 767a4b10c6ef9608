import { type MaskedText, maskSpans, maskText, secretsIn } from "./mask-text.ts";
import type { TextSpan } from "./span.ts";
import { unfinishedToken } from "./tokens/token-secrets.ts";
import { triggersIn } from "./triggers.ts";

/*
 * Output comes in pieces, and a secret can be cut in two by where a piece ends. So a piece that ends within a line has
 * masked what may be the beginning of a secret, and its end is kept, as masked, for the next piece of the same stream.
 * Nothing is held back. What is kept of a piece can be read back from the log, because it is made of what is recorded.
 */

/** The part of a line's end that the next piece is read with. */
const longestTail = 512;
/** In a piece that continues a line, these end a secret of the line before. */
const longestRest = 8_192;

/** Masks a piece of output: like any text, and also the unfinished secret of its last line. */
export function maskPiece(text: string): MaskedText {
  const once = maskText(text);
  if (text === "" || text.endsWith("\n")) return once;
  let masked = once;
  // A secret may be inside another (a token in place of a password): masking twice changes nothing.
  for (let again = 0; again < maxTimes; again += 1) {
    const more = maskUnfinished(masked.text);
    if (more === masked.text) break;
    masked = { text: maskText(more).text, secrets: once.secrets + 1 };
  }
  return masked;
}

const maxTimes = 8;

function maskUnfinished(text: string): string {
  const from = Math.max(text.lastIndexOf("\n") + 1, text.length - longestTail);
  const unfinished = unfinishedIn(text.slice(from));
  return unfinished === undefined
    ? text
    : maskSpans(text, [{ start: from + unfinished.start, end: from + unfinished.end }]);
}

const unfinishedPassword = /:\/\/[^\s:@/"'`<>\\]{0,255}:([^\s"'`<>\\@]{1,255})$/;
/** Shapes that are certain only with their ends. */
const unfinished: readonly RegExp[] = [
  /[?&](?:x-[a-z]{1,10}-)?(?:sig|signature)=([^\s&"'`#<>\\]{6,300})$/i,
  /[?&]code=([^\s&"'`#<>\\]{12,300})$/i,
  /(?<![\w~.])[\w~.]{3}[0-9]Q~([\w~.-]{1,34})$/,
  /(?<![\w-]|base64,)eyJ([A-Za-z0-9_-]{6,500}(?:\.[A-Za-z0-9_-]{0,500}){0,2})$/,
  /<[\w.:-]{0,60}(?:password|passphrase|secret|token|apikey)(?: [^<>]{0,100})?>([^<]{1,300})$/i,
  /(?<![0-9])[0-9]{8,10}:AA([\w-]{1,33})$/,
];

function unfinishedIn(line: string): TextSpan | undefined {
  const token = tokenAtEnd(line);
  if (token !== undefined) return token;
  for (const pattern of unfinished) {
    const value = pattern.exec(line)?.[1];
    if (value !== undefined) return { start: line.length - value.length, end: line.length };
  }
  const password = unfinishedPassword.exec(line)?.[1];
  // A port, or a path after it.
  if (password === undefined || /^\d{1,5}(?:[/?#].*)?$/.test(password) || /^[$*/]/.test(password)) return undefined;
  return { start: line.length - password.length, end: line.length };
}

function tokenAtEnd(line: string): TextSpan | undefined {
  for (const place of triggersIn(line).places) {
    const token = unfinishedToken(line, place);
    if (token !== undefined) return token;
  }
  return undefined;
}

const keyBegins = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
/** The lines of a key: base64, and the headers before it. */
const keyLine = /^[^\S\n]*(?:[A-Za-z0-9+/=*]+|[A-Z][A-Za-z-]{2,20}: .{1,100})?[^\S\n]*\r?$/;
const named = /(?:\bname: *["']?[\w.-]{1,100}["']?|: *[|>][-+\d]{0,2}) *\r?\n$/;

/** The end of a recorded piece that the next one of its stream continues. Empty, most often: nothing is open. */
export function tailOf(text: string): string {
  const key = unfinishedKey(text);
  if (key !== "") return `${key}\n`;
  if (!text.endsWith("\n")) return text.slice(Math.max(text.lastIndexOf("\n") + 1, text.length - longestTail));
  const before = text.charAt(text.length - 2);
  if (!/[\w"'|>+\r-]/.test(before) || !text.includes(":", text.length - longestTail)) return "";
  const line = text.slice(Math.max(text.lastIndexOf("\n", text.length - 2) + 1, text.length - longestTail));
  return named.test(line) && triggersIn(line).rules !== 0 ? line : "";
}

function unfinishedKey(text: string): string {
  if (!text.includes("PRIVATE KEY")) return "";
  let begin = "";
  let after = 0;
  for (const { 0: found, index } of text.matchAll(keyBegins)) {
    begin = found;
    after = index + found.length;
  }
  return begin === "" || text.includes("-----END", after) || !isOfKey(text.slice(after)) ? "" : begin;
}

/** True if all of the text may be part of a private key. */
function isOfKey(text: string): boolean {
  if (text.length > longestRest) return false;
  return text.split("\n").every((line) => keyLine.test(line));
}

/** A private key has begun and not ended. */
export function isKeyTail(tail: string): boolean {
  return tail.startsWith("-----BEGIN") && tail.endsWith("-----\n");
}

/** Masks a piece, already masked alone, after the tail of the piece before it. */
export function maskContinued(tail: string, piece: string): MaskedText {
  if (tail === "" || piece === "") return { text: piece, secrets: 0 };
  if (isKeyTail(tail)) {
    const [ofKey = ""] = piece.split("-----END");
    if (!isOfKey(ofKey)) return { text: piece, secrets: 0 };
  }
  const rest = piece.slice(0, longestRest);
  const spans = secretsIn(tail + rest).flatMap(({ start, end }): TextSpan[] => {
    const span = { start: Math.max(0, start - tail.length), end: end - tail.length };
    return span.end > span.start ? [span] : [];
  });
  const open = openRun(tail, rest);
  const text = maskSpans(piece, open === 0 ? spans : [...spans, { start: 0, end: open }]);
  return { text, secrets: text === piece ? 0 : 1 };
}

/** The length of the rest of a secret that was masked up to the end of the piece before. */
function openRun(tail: string, rest: string): number {
  const before = tail.replace(/\*+$/, "");
  const stars = tail.length - before.length;
  // A row of asterisks is an ornament.
  if (stars === 0 || before.trim() === "") return 0;
  if (/:\/\/[^\s:@/"'`<>\\]{0,255}:$/.test(before)) return lengthUntil(rest, /[\s"'`<>\\@]/);
  if (/<[^<>]{1,200}>$/.test(before)) return lengthUntil(rest, /[<\n]/);
  const isOpen =
    stars >= 16 || tokenAtEnd(`${before}a1a1`) !== undefined || unfinishedIn(`${before}a1a1a1a1a1a1`) !== undefined;
  return isOpen ? lengthUntil(rest, /[^\w+/=.~%-]/) : 0;
}

function lengthUntil(text: string, end: RegExp): number {
  const at = text.search(end);
  return at < 0 ? text.length : at;
}
