import { isTrivial } from "./secret-name.ts";
import type { TextSpan } from "./span.ts";

/** "Authorization: Basic …" as a header, JSON, a Go struct, or an argument of a shell with a backslash before its blanks. */
const authorization = /authorization["'\\]{0,2}[ \t]{0,4}[:=](?:\\?[ \t]){0,4}["'\\[]{0,3}/gi;
const schemeName = /([A-Za-z][\w-]{1,30})(?:\\?[ \t]){1,4}(?=[^\s:=])/y;
/** A scheme counts without the header's name if the text after it can be no word. */
const scheme = /\b(?:bearer|basic)[ \t]{1,4}/gi;
const credentials = /[A-Za-z0-9+/=._~-]{8,}/y;
/** Schemes whose credentials have several parts, up to the end of the header. */
const partsFollow =
  /^(?:digest|signature|hawk|oauth|aws4-hmac-sha256|aws4-ecdsa-p256-sha256|goog4-rsa-sha256|goog4-hmac-sha256)$/i;
const knownScheme =
  /^(?:bearer|basic|token|apikey|api-key|negotiate|ntlm|aws|sharedkey|sharedkeylite|key|splunk|geniekey|private|jwt)$/i;

/** Finds the credentials of requests: authorization of any scheme, and cookies. */
export function headerSecrets(text: string): TextSpan[] {
  return [...authorizations(text), ...schemes(text), ...cookies(text)];
}

function* authorizations(text: string): Iterable<TextSpan> {
  let searched = 0;
  for (const { index, 0: introduction } of text.matchAll(authorization)) {
    if (index < searched) continue;
    const at = index + introduction.length;
    schemeName.lastIndex = at;
    const name = schemeName.exec(text)?.[1] ?? "";
    const start = name === "" ? at : schemeName.lastIndex;
    if (partsFollow.test(name)) {
      searched = endOfLine(text, start, text.charAt(index - 1));
      yield { start, end: searched };
      continue;
    }
    searched = endOfWord(text, start);
    const value = text.slice(start, searched);
    if (knownScheme.test(name) ? !isProse(value) : looksSecret(value)) yield { start, end: searched };
    else if (name !== "" && looksSecret(name) && !/^\*+$/.test(value)) yield { start: at, end: at + name.length };
  }
}

function endOfWord(text: string, start: number): number {
  let at = start;
  while (at < text.length && !/[\s"'`\],;}<>\\]/.test(text.charAt(at))) at += 1;
  return at;
}

/** The end of the line, or of the quotes around the header. */
function endOfLine(text: string, start: number, before: string): number {
  const quote = /["'`]/.test(before) ? before : "";
  let at = start;
  while (at < text.length && !/[\r\n]/.test(text.charAt(at)) && text.charAt(at) !== quote)
    at += text.charAt(at) === "\\" ? 2 : 1;
  return Math.min(at, text.length);
}

/** "authorization: required" and "basic authentication" are prose. */
function looksSecret(value: string): boolean {
  if (isTrivial(value) || /^[$<{]/.test(value)) return false;
  return value.length >= 6 && (/\d|[a-z][A-Z]/.test(value.slice(0, 200)) || value.endsWith("="));
}

function isProse(value: string): boolean {
  return (
    isTrivial(value) ||
    /^(?:\$[({]|[<{])/.test(value) ||
    /^(?:auth|authentication|authorization|realm.*|scheme|header)$/i.test(value)
  );
}

function* schemes(text: string): Iterable<TextSpan> {
  let searched = 0;
  for (const match of text.matchAll(scheme)) {
    if (match.index < searched) continue;
    const start = match.index + match[0].length;
    credentials.lastIndex = start;
    const value = credentials.exec(text)?.[0] ?? "";
    searched = start + value.length;
    if (/\d|[a-z][A-Z]/.test(value.slice(0, 200)) || value.endsWith("=")) yield { start, end: searched };
  }
}

const cookie = /(?:^|[\s"'<>[(-])(set-)?cookie["'\\]{0,2}(?::[ \t]{0,4}\[?|[ =]{1,2}(?=["'\w]))["'\\]{0,2}/gi;
const pair = /([\w.-]{1,100})=([^\s;"'\]]+)(;[ \t]{0,2})?/y;

/** The values in "Cookie: a=…; b=…", "Set-Cookie: a=…; Path=/" and --cookie. */
function* cookies(text: string): Iterable<TextSpan> {
  for (const match of text.matchAll(cookie)) {
    pair.lastIndex = match.index + match[0].length;
    for (let found = pair.exec(text); found !== null; found = pair.exec(text)) {
      const [whole, , value = "", more] = found;
      const end = pair.lastIndex - (more ?? "").length;
      if (value.length >= 6 && whole !== "") yield { start: end - value.length, end };
      if (more === undefined || match[1] !== undefined) break;
    }
  }
}
