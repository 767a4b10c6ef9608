import { isEnvironmentName, isTrivial } from "../secret-name.ts";
import type { TextSpan } from "../span.ts";
import { looksRandom } from "./plausible.ts";
import type { Name } from "./values.ts";
import { bareValue, quotedValue, skipBlanks, startsLine } from "./values.ts";

type ValuePosition = { readonly afterName: number; readonly isQuoted: boolean };

/** Finds values that no sign assigns: flags, elements, pairs, tables, words between name and value. */
export function unassignedValue(
  text: string,
  name: Name,
  { afterName, isQuoted }: ValuePosition,
): TextSpan | undefined {
  const paired =
    /[:="'\\]/.test(text.charAt(name.start - 1)) || text.charAt(name.start - 2) === ":"
      ? pairedValue(text, name, afterName)
      : undefined;
  if (paired !== undefined) return paired;
  if (isQuoted) return entryValue(text, afterName);
  const after = text.charAt(afterName);
  if (after === ">" || (after === " " && isElement(text, name))) return elementValue(text, name);
  if (after === "(") return callValue(text, name);
  if (after !== " " && after !== "\t") return undefined;
  const at = skipBlanks(text, afterName);
  if (name.isFlag && !isEnvironmentName(name.text)) return flagValue(text, at);
  return (
    commandValue(text, name, at) ??
    tableValue(text, name, at) ??
    numberedValue(text, name, at) ??
    sentenceValue(text, at) ??
    quotedToken(text, name, at)
  );
}

/** `--password hunter2`. */
function flagValue(text: string, at: number): TextSpan | undefined {
  if (/[-<|>]/.test(text.charAt(at))) return undefined;
  const value = quotedValue(text, at) ?? bareValue(text, at, /[\s"'`,\])]/, true);
  // `--secret id=npm` names one.
  return value && /^(?:id|type|src|env)=/.test(text.slice(value.start, value.end)) ? undefined : value;
}

const namesIt = /\b(?:name|key)["'\\]{0,2}[ \t]{0,4}[:=][ \t]{0,4}["'\\]{0,2}$/i;
const holdsIt = /["'\\]{0,2},?\s{0,80}["'\\]{0,2}value["'\\]{0,2}[ \t]{0,4}[:=][ \t]{0,4}/iy;

/** The environment of a container: {"name": "DB_PASSWORD", "value": "hunter2"}, in JSON, YAML, XML or Go's words. */
function pairedValue(text: string, name: Name, afterName: number): TextSpan | undefined {
  if (!namesIt.test(text.slice(Math.max(0, name.start - 24), name.start))) return undefined;
  holdsIt.lastIndex = afterName;
  const start = afterName + (holdsIt.exec(text)?.[0].length ?? 0);
  if (start === afterName) return undefined;
  return quotedValue(text, start) ?? bareValue(text, start, /[\s,}]/, true);
}

const entry = />([^<\n]{1,1000})<\/entry>/y;

/** `<entry key="db.password">hunter2</entry>`, of Java's properties. */
function entryValue(text: string, afterName: number): TextSpan | undefined {
  entry.lastIndex = afterName;
  const value = entry.exec(text)?.[1];
  return value === undefined ? undefined : { start: afterName + 1, end: afterName + 1 + value.length };
}

function isElement(text: string, { start }: Name): boolean {
  return text.charAt(start - 1) === "<";
}

const restOfTag = /[^<>]{0,200}>([^<]{1,10000})<\//y;
const characterData = /[^<>]{0,200}>\s{0,40}<!\[CDATA\[((?:[^\]]|\](?!\]>)){1,1000})\]\]>\s{0,40}<\//y;

/** `<password>hunter2</password>`, `<password><![CDATA[hunter2]]></password>`. */
function elementValue(text: string, name: Name): TextSpan | undefined {
  if (!isElement(text, name)) return undefined;
  characterData.lastIndex = name.end;
  const data = characterData.exec(text);
  if (data !== null && text.startsWith(name.text, characterData.lastIndex)) {
    const start = text.indexOf("<![CDATA[", name.end) + "<![CDATA[".length;
    return { start, end: start + (data[1] ?? "").length };
  }
  restOfTag.lastIndex = name.end;
  const found = restOfTag.exec(text);
  if (found === null || !text.startsWith(name.text, restOfTag.lastIndex)) return undefined;
  const end = restOfTag.lastIndex - 2;
  return { start: end - (found[1] ?? "").length, end };
}

/** `.setPassword("hunter2")`. */
function callValue(text: string, { text: name, end }: Name): TextSpan | undefined {
  return /(?:^|\.)(?:set|with)[A-Za-z]+$/i.test(name) ? quotedValue(text, end + 1) : undefined;
}

const commandBefore =
  /(?:\bENV|\bsetenv|\bsetx|\bset +-g?x|\bconfig(?:ure)? set(?: +-{1,2}\w+)?|\blogin +\S{1,80}|\/:|\bunsafePerm)\s{0,8}$/;

/** A value that a command or a file sets without a sign: `ENV TOKEN abc`, `npm config set //host/:_authToken abc`, .netrc. */
function commandValue(text: string, { text: name, start }: Name, at: number): TextSpan | undefined {
  const value = quotedValue(text, at) ?? bareValue(text, at, /[\s"'`]/, false);
  if (value === undefined || value.end === value.start) return undefined;
  // SQL, and settings of Gradle.
  if (/^(?:password|passwd|passphrase)$/i.test(name) && /^['"]/.test(text.slice(at, at + 1))) return value;
  return commandBefore.test(text.slice(Math.max(0, start - 100), start)) ? value : undefined;
}

/** `token      hvs.abc`, alone on its line, as vault prints it. */
function tableValue(text: string, { start, end }: Name, at: number): TextSpan | undefined {
  if (at - end < 2 || !startsLine(text, start)) return undefined;
  const value = bareValue(text, at, /\s/, true);
  if (value === undefined || !/^[ \t]{0,8}(?:\r?\n|$)/.test(text.slice(value.end, value.end + 10))) return undefined;
  return looksRandom(text.slice(value.start, value.end)) ? value : undefined;
}

const number = /\d{1,3}:[ \t]{1,4}(\S{8,})/y;

/** `Unseal Key 1: abc`. */
function numberedValue(text: string, { text: name }: Name, at: number): TextSpan | undefined {
  if (!/keys?$/i.test(name)) return undefined;
  number.lastIndex = at;
  const found = number.exec(text);
  return found === null ? undefined : { start: number.lastIndex - (found[1] ?? "").length, end: number.lastIndex };
}

const token = /[\w+/=.~-]{8,}(?=[\s"'`,;:.)\]]|$)/y;
const digest = /^(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** `login with token abc…`, `temporary password abc…`: what stands there is longer or more mixed than words are. */
function quotedToken(text: string, { text: name, start }: Name, at: number): TextSpan | undefined {
  if (!/(?:token|api[-_ ]?key|apikey|secret|password)$/i.test(name)) return undefined;
  token.lastIndex = at;
  const found = token.exec(text)?.[0].replace(/[.:;,]+$/, "");
  if (found === undefined || digest.test(found) || !looksRandom(found)) return undefined;
  const isGiven = /(?:temporary|generated|initial|new|one-time|admin|root|default)\s$/i.test(
    text.slice(Math.max(0, start - 12), start),
  );
  const isMixed =
    /[a-z]/.test(found) && /[A-Z]/.test(found) && (found.match(/[a-zA-Z]\d|\d[a-zA-Z]/g) ?? []).length >= 2;
  const isLong = found.length >= 18 && (found.match(/\d/g) ?? []).length >= 3 && !/[./]/.test(found);
  return isLong || (isGiven && isMixed) ? { start: at, end: at + found.length } : undefined;
}

const sentence =
  /(?:(?:is )?generated for \S{1,80}(?=: )|(?:is|was|has been) (?:now |set to )?|set to )(?:: )?(\S{6,})/y;

/** `A temporary password is generated for root@localhost: x`, `the token is x`. */
function sentenceValue(text: string, at: number): TextSpan | undefined {
  sentence.lastIndex = at;
  const found = sentence.exec(text)?.[1];
  if (found === undefined) return undefined;
  const value = found.replace(/["'`.,;)]+$/, "");
  const start = sentence.lastIndex - found.length;
  return looksRandom(value) && !isTrivial(value) ? { start, end: start + value.length } : undefined;
}
