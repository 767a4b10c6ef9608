import { isEnvironmentName, isSecretName, opensWith } from "../secret-name.ts";
import type { TextSpan } from "../span.ts";
import { isCode, isTarget } from "./code.ts";
import { type Dump, dumpsIn } from "./dumps.ts";
import { isBasicAuth, isMethodName, isNoSecret, looksRandom } from "./plausible.ts";
import { unassignedValue } from "./unassigned-values.ts";
import type { Name } from "./values.ts";
import { bareValue, quotedValue, settingValue, skipBlanks, startsLine, yamlValue } from "./values.ts";

/**
 * Finds values with secret names: NAME=value, NAME: value, "name": "value", --name value, <name>value</name>,
 * name/value pairs of manifests, Go's dumps. Text is searched only around the words that secret names are made of.
 */
export function assignedSecrets(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  const dumpAt = dumpsIn(text);
  const hint =
    /secret|token|pass|key|cred|pwd|pswd|(?<=[_.-])pat(?![a-z0-9])|(?<![a-z0-9])(?:psk|pw)(?![a-z0-9])|auth|signature|sig(?==)|code(?==)|connection_?string|sonar\.login/gi;
  for (let match = hint.exec(text); match !== null; match = hint.exec(text)) {
    const name = nameAround(text, match.index);
    const kind = kindOf(text, name);
    const value = kind === "none" ? undefined : assignedValue(text, name, kind, dumpAt(name.start));
    const isSecret = value !== undefined && isPlausible(text, name, kind, value);
    if (isSecret) spans.push(value, ...changedTo(text, value));
    // Always forward, so that no text is searched for more than one name.
    hint.lastIndex = Math.max(match.index + match[0].length, name.end, isSecret ? value.end : 0);
  }
  return spans;
}

/** A longer text is no name. */
const nameLimit = 120;
const nameCharacters = new Set(
  [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"].map((one) => one.charCodeAt(0)),
);
const isOfName = Uint8Array.from({ length: 128 }, (_, code) => (nameCharacters.has(code) ? 1 : 0));

function nameAround(text: string, hint: number): Name {
  let start = hint;
  while (start > 0 && hint - start < nameLimit && isOfName[text.charCodeAt(start - 1)] === 1) start -= 1;
  let end = hint;
  while (end < text.length && end - hint < nameLimit && isOfName[text.charCodeAt(end)] === 1) end += 1;
  const isFlag = text.charAt(start) === "-";
  while (start < end && /[-.]/.test(text.charAt(start))) start += 1;
  const quote = /\\?["']$/.exec(text.slice(Math.max(0, start - 2), start))?.[0] ?? "";
  return { text: text.slice(start, end).replace(/[-.]+$/, ""), start, end, isFlag, quote };
}

/**
 * - `phrase`: the name is a word of more than one: "API key";
 * - `auth`: the method of a login, or its secret: the value decides;
 * - `parameter`: a secret only in the address of a request;
 * - `short`: `pass`, `pw`, `psk`, which are ordinary words too.
 */
type NameKind = "secret" | "phrase" | "auth" | "parameter" | "short" | "none";

function kindOf(text: string, { text: name, start, quote }: Name): NameKind {
  const before = text.charAt(start - 1);
  if (/^(?:|x-.*-)(?:sig|signature|code)$/i.test(name)) return /[?&;]/.test(before) ? "parameter" : "none";
  if (/(?:^|[._-])auth$/i.test(name) && name !== "_auth") return /^PWD$/i.test(name) ? "none" : "auth";
  if (/^pwd$/i.test(name))
    return before === ";" || (quote !== "" && name !== "PWD") || /^pwd: ?["']/.test(text.slice(start, start + 6))
      ? "secret"
      : "none";
  if (/^(?:pass|pw|psk|wpa-psk)$/i.test(name)) return "short";
  if (/^keys?$/i.test(name)) return opensWith(wordBefore(text, start)) ? "phrase" : "none";
  // The user of a URL.
  if (text.startsWith("://", start - 3)) return "none";
  return name === "_auth" || /sonar\.login$/.test(name) || isSecretName(name) ? "secret" : "none";
}

function wordBefore(text: string, start: number): string {
  return /([A-Za-z]+) $/.exec(text.slice(Math.max(0, start - 20), start))?.[1] ?? "";
}

function isPlausible(
  text: string,
  { text: name, start: nameStart }: Name,
  kind: NameKind,
  { start, end }: TextSpan,
): boolean {
  const value = text.slice(start, Math.min(end, start + 4_000));
  const isQuoted = /["'`]/.test(text.charAt(start - 1));
  // A text that is no secret is searched again for other names, so it has to be short.
  const isShort = end - start <= 1_000;
  if (isShort && isNoSecret(value, name, isQuoted || text.charAt(start - 1) === "=")) return false;
  // A bracket or a comma that ended the value is a part of code.
  const code = /[)\],]/.test(text.charAt(end)) ? value + text.charAt(end) : value;
  if (isShort && !isQuoted && isCode(code, isEnvironmentName(name) && text.charAt(start - 1) === "=")) return false;
  if (isShort && !isQuoted && isTarget(name, value)) return false;
  // A target of Bazel or make: //src/secret:lib, [secret:test].
  const isLabel = /[/[]/.test(text.charAt(nameStart - 1)) && text.charAt(start - 1) === ":";
  if (isLabel && /^[a-z][a-z._/-]*$/i.test(value)) return false;
  if (kind === "parameter") return value.length >= (/code$/i.test(name) ? 30 : 16);
  if (kind === "short")
    return value.length >= 6 && !/\s/.test(value) && (isQuoted || text.charAt(start - 1) === "=" || looksRandom(value));
  if (kind !== "auth") return true;
  if (isEnvironmentName(name)) return name.includes("_") && !isMethodName(value);
  // The rest of a secret that began in another piece of the output.
  if (value.startsWith("***")) return true;
  return isBasicAuth(value) || (value.length >= 16 && looksRandom(value)) || /^[^\s:/]+:[^\s/]+$/.test(value);
}

/** `password = "old" -> "new"`. */
function changedTo(text: string, { end }: TextSpan): TextSpan[] {
  if (!/^"\s{1,4}->\s{1,4}"/.test(text.slice(end, end + 14))) return [];
  const after = quotedValue(text, text.indexOf('"', end + 1));
  return after === undefined ? [] : [after];
}

function assignedValue(text: string, name: Name, kind: NameKind, dump: Dump | undefined): TextSpan | undefined {
  const isQuoted = name.quote !== "" && text.startsWith(name.quote, name.end);
  const bracket = isQuoted && text.charAt(name.end + name.quote.length) === "]" ? 1 : 0;
  const afterName = isQuoted ? name.end + name.quote.length + bracket : name.end;
  const separatorAt = skipBlanks(text, afterName);
  const separator = separatorOf(text, separatorAt, isQuoted || isSymbol(text, name));
  if (separator === "")
    return isQuoted && bracket === 1 ? undefined : unassignedValue(text, name, { afterName, isQuoted });
  const start = separatorAt + separator.length;
  if (!isQuoted && dump?.separator === separator && separatorAt === name.end)
    return inGoBrackets(text, dump.valueAt(start));
  // A blank in a shell argument: `-H PRIVATE-TOKEN:\ abc`.
  const isEscaped = separator === ":" && text.startsWith("\\ ", start);
  const valueAt = skipBlanks(text, isEscaped ? start + 2 : start);
  const quoted = quotedValue(text, valueAt);
  if (quoted !== undefined) return quoted;
  if (isQuoted) return bareValue(text, valueAt, /[\s,}\]\\]/, true);
  const isTight = separatorAt === name.end && (valueAt === start || isEscaped);
  if (separator === "=") {
    if (isTight && text.charAt(name.start - 1) === ";" && text.charAt(valueAt) === "{") {
      // ODBC.
      const end = text.indexOf("}", valueAt);
      if (end > 0 && end - valueAt < 200) return { start: valueAt + 1, end };
    }
    if (isTight) return bareValue(upToNextName(text, name, valueAt), valueAt, assignmentEnd(text, name), false);
    return startsLine(text, name.start) ? settingValue(text, valueAt) : undefined;
  }
  if (separator !== ":") return undefined;
  return afterColon(text, name, kind, valueAt, isTight);
}

function afterColon(text: string, name: Name, kind: NameKind, valueAt: number, isTight: boolean): TextSpan | undefined {
  if (name.quote !== "" && isHeader(text, name)) {
    const whole = quotedValue(text, name.start - name.quote.length);
    return whole && { start: valueAt, end: whole.end };
  }
  if (isTight) {
    // A part of a list, as in arn:aws:secretsmanager:…:secret:name.
    if (text.charAt(name.start - 1) === ":" && text.charAt(name.start - 2) !== "/") return undefined;
    return bareValue(text, valueAt, /[\s,;)}\]"'`]/, true);
  }
  if (isEnvironmentName(name.text) || (kind === "secret" && startsLine(text, name.start))) {
    return yamlValue(text, name.start, valueAt);
  }
  const word = bareValue(text, valueAt, /[\s"'`,;)]/, true);
  const isComplaint = /(?:unexpected|illegal|invalid|unknown)\s+$/i.test(
    text.slice(Math.max(0, name.start - 14), name.start),
  );
  return word && !isComplaint && looksRandom(text.slice(word.start, word.end)) ? word : undefined;
}

/**
 * The text up to the next name of a list: `password=abc,sslmode=require`, `password=abc, port=1`, `A_PW=abc,B=1`. A shell has
 * no such lists, so a comma after a variable of the environment is the password's own unless another variable follows.
 */
function upToNextName(text: string, { text: name }: Name, valueAt: number): string {
  const nextName = isEnvironmentName(name) ? /,\s?[A-Z_][A-Z0-9_]{0,40}=/ : /,\s?[A-Za-z_][\w.-]{0,40}=/;
  const next = nextName.exec(text.slice(valueAt, valueAt + 1_000));
  return next === null ? text : text.slice(0, valueAt + next.index);
}

/** `-H "PRIVATE-TOKEN: …"`. */
function isHeader(text: string, { text: name, start }: Name): boolean {
  return name.includes("-") || /(?:-H|--header)[= ]?\\?["']$/.test(text.slice(Math.max(0, start - 12), start));
}

/** Go prints a header's values in brackets. */
function inGoBrackets(text: string, { start, end }: TextSpan): TextSpan {
  const isList = text.charAt(start) === "[" && text.charAt(end - 1) === "]";
  return isList ? { start: start + 1, end: end - 1 } : { start, end };
}

/** `:password => "…"`, of Ruby. */
function isSymbol(text: string, { start }: Name): boolean {
  return text.charAt(start - 1) === ":";
}

/** `isKey`: an arrow may stand after it. */
function separatorOf(text: string, at: number, isKey: boolean): "" | "=" | ":" | ":=" | "=>" {
  const [first, second] = [text.charAt(at), text.charAt(at + 1)];
  if (first === "=" && second === ">") return isKey ? "=>" : "";
  if (first === "=") return second === "=" || second === "~" ? "" : "=";
  if (first !== ":" || second === ":") return "";
  return second === "=" ? ":=" : ":";
}

function assignmentEnd(text: string, name: Name): RegExp {
  const before = text.charAt(name.start - 1);
  if (/[?&]/.test(before) || text.startsWith("&amp;", name.start - 5)) return /[\s"'&#<>\\]/;
  if (before === ";") return /[\s"';]/;
  return name.quote.endsWith("'") ? /[\s"']/ : /[\s"]/;
}
