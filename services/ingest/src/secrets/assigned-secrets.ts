import { type Dump, dumpsIn } from "./dumps.ts";
import { isEnvironmentName, isSecretName, mayCount } from "./secret-name.ts";
import type { Span } from "./span.ts";

/**
 * Values that a name tells to be secret: NAME=value, NAME: value, "name": "value", --name value, name/value pairs of
 * manifests, Go's dumps. Text is looked at only around the words that secret names are made of.
 */
export function assignedSecrets(text: string): Span[] {
  const spans: Span[] = [];
  const dumpAt = dumpsIn(text);
  const hint = /secret|token|pass|key|credential/gi;
  for (let match = hint.exec(text); match !== null; match = hint.exec(text)) {
    const name = nameAround(text, match.index);
    const value = isSecretName(name.text) ? assignedValue(text, name, dumpAt(name.start)) : undefined;
    const isSecret =
      value !== undefined && !isTrivial(text.slice(value.start, Math.min(value.end, value.start + 20)), name.text);
    if (isSecret) spans.push(value);
    // Forward in any case, so that no text is looked at for more than one name.
    hint.lastIndex = Math.max(match.index + match[0].length, name.end, isSecret ? value.end : 0);
  }
  return spans;
}

type Name = Span & {
  readonly text: string;
  readonly isFlag: boolean;
  /** The quote right before it, `\"` included. */
  readonly quote: string;
};

/** Longer names are none. */
const nameLimit = 120;
const nameCharacter = /[A-Za-z0-9_.-]/;

function nameAround(text: string, hint: number): Name {
  let start = hint;
  while (start > 0 && hint - start < nameLimit && nameCharacter.test(text.charAt(start - 1))) start -= 1;
  let end = hint;
  while (end < text.length && end - hint < nameLimit && nameCharacter.test(text.charAt(end))) end += 1;
  const isFlag = text.charAt(start) === "-";
  while (start < end && /[-.]/.test(text.charAt(start))) start += 1;
  const quote = /\\?["']$/.exec(text.slice(Math.max(0, start - 2), start))?.[0] ?? "";
  return { text: text.slice(start, end).replace(/[-.]+$/, ""), start, end, isFlag, quote };
}

function assignedValue(text: string, name: Name, dump: Dump | undefined): Span | undefined {
  const isQuoted = name.quote !== "" && text.startsWith(name.quote, name.end);
  const afterName = isQuoted ? name.end + name.quote.length : name.end;
  const separatorAt = skipBlanks(text, afterName);
  const separator = separatorOf(text, separatorAt, isQuoted);
  if (separator === "") {
    return pairedValue(text, name, afterName) ?? (name.isFlag ? flagValue(text, name, separatorAt) : undefined);
  }
  const start = separatorAt + separator.length;
  if (!isQuoted && dump?.separator === separator && separatorAt === name.end) return dump.valueAt(start);
  const valueAt = skipBlanks(text, start);
  const quoted = quotedValue(text, valueAt);
  if (quoted !== undefined) return quoted;
  if (isQuoted) return bare(text, valueAt, /[\s,}\]\\]/, true);
  const isTight = separatorAt === name.end && valueAt === start;
  if (separator === "=") {
    if (isTight) return bare(text, valueAt, assignmentEnd(text, name), false);
    return startsLine(text, name.start) ? settingValue(text, valueAt) : undefined;
  }
  if (separator !== ":") return undefined;
  if (isTight) return bare(text, valueAt, /[\s,;)}\]"'`]/, true);
  if (!isEnvironmentName(name.text) && !startsLine(text, name.start)) return undefined;
  return yamlValue(text, name, valueAt);
}

function separatorOf(text: string, at: number, isQuoted: boolean): "" | "=" | ":" | ":=" | "=>" {
  const [first, second] = [text.charAt(at), text.charAt(at + 1)];
  if (first === "=" && second === ">") return isQuoted ? "=>" : "";
  if (first === "=") return second === "=" || second === "~" ? "" : "=";
  if (first !== ":" || second === ":") return "";
  return second === "=" ? ":=" : ":";
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (at - from < 16 && (text.charAt(at) === " " || text.charAt(at) === "\t")) at += 1;
  return at;
}

/** What is between the quotes, which may themselves be escaped (JSON inside JSON). Cut off: up to the line's end. */
function quotedValue(text: string, at: number): Span | undefined {
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
function bare(text: string, start: number, ends: RegExp, structure: boolean): Span | undefined {
  if (structure && /[[{]/.test(text.charAt(start))) return undefined;
  let end = start;
  while (end < text.length && !ends.test(text.charAt(end))) end += 1;
  // A backslash before n, r, t or a quote: text inside of a string.
  return { start, end: escapeWithin(text, start, end) };
}

function escapeWithin(text: string, start: number, end: number): number {
  const value = text.slice(start, end);
  for (let at = value.indexOf("\\"); at >= 0; at = value.indexOf("\\", at + 1)) {
    if (/[nrt"']/.test(text.charAt(start + at + 1))) return start + at;
  }
  return end;
}

function assignmentEnd(text: string, name: Name): RegExp {
  if (/[?&]/.test(text.charAt(name.start - 1))) return /[\s"'&#<>]/;
  return name.quote.endsWith("'") ? /[\s"']/ : /[\s"]/;
}

/** `password = hunter2` in a file of settings; not code, which calls or ends with a semicolon. */
function settingValue(text: string, start: number): Span | undefined {
  const value = bare(text, start, /\s/, true);
  return value && /[();{}]/.test(text.slice(value.start, value.end)) ? undefined : value;
}

/** In block style up to the end of the line or its comment, in flow style (after a brace or comma) up to the next one. */
function yamlValue(text: string, name: Name, start: number): Span | undefined {
  if (/[[{]/.test(text.charAt(start))) return undefined;
  if (/[,{]/.test(text.slice(Math.max(0, name.start - 2), name.start))) return bare(text, start, /[,}\]\n]/, true);
  const line = bare(text, start, /[\r\n]/, true);
  if (line === undefined) return undefined;
  const told = text.slice(line.start, line.end);
  if (/^[|>][-+\d]{0,2}\s*$/.test(told)) return { start: line.end, end: endOfBlock(text, name.start, line.end) };
  const comment = told.search(/\s#/);
  return { start: line.start, end: line.start + (comment < 0 ? told : told.slice(0, comment)).trimEnd().length };
}

/** Of the lines that stand further right than the name. */
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

/** Before the name there is nothing on its line but what makes a list, a quote or a difference. */
function startsLine(text: string, nameStart: number): boolean {
  let at = nameStart;
  while (nameStart - at < 80 && /[ \t+|>"'-]/.test(text.charAt(at - 1))) at -= 1;
  const before = text.slice(Math.max(0, at - 2), at);
  return at === 0 || /(?:[\n{,([;]|\\n)$/.test(before);
}

/** `--password hunter2`. */
function flagValue(text: string, name: Name, at: number): Span | undefined {
  if (at === name.end || text.charAt(at) === "-" || isEnvironmentName(name.text)) return undefined;
  return quotedValue(text, at) ?? bare(text, at, /[\s"'`,\])]/, true);
}

const namesIt = /\bname["'\\]{0,2}[ \t]{0,4}[:=][ \t]{0,4}["'\\]{0,2}$/i;
const holdsIt = /["'\\]{0,2},?\s{0,80}["'\\]{0,2}value["'\\]{0,2}[ \t]{0,4}[:=][ \t]{0,4}/iy;

/** The environment of a container: {"name": "DB_PASSWORD", "value": "hunter2"}, in JSON, YAML or Go's words. */
function pairedValue(text: string, name: Name, afterName: number): Span | undefined {
  if (!namesIt.test(text.slice(Math.max(0, name.start - 24), name.start))) return undefined;
  holdsIt.lastIndex = afterName;
  const start = afterName + (holdsIt.exec(text)?.[0].length ?? 0);
  if (start === afterName) return undefined;
  return quotedValue(text, start) ?? bare(text, start, /[\s,}]/, true);
}

/** What can't be a secret, or is hidden already. */
function isTrivial(value: string, name: string): boolean {
  if (/^(?:true|false|null|nil|<nil>|none|undefined|yes|no|on|off|\*+|)$/i.test(value)) return true;
  return mayCount(name) && /^\d{1,9}$/.test(value);
}
