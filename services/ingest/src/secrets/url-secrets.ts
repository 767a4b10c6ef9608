import { looksRandom } from "./assigned/plausible.ts";
import { isTrivial } from "./secret-name.ts";
import type { TextSpan } from "./span.ts";

/** A longer text is no user information. */
const authorityLimit = 1_000;
const host =
  /@(?:\[[0-9a-fA-F:.]{2,40}\]|[A-Za-z0-9_*$%.-]{1,255})(?::(?:\d{1,5}|\$\{?\w{1,40}\}?))?(?=[/?#\s"'`<>\\,;)\]}|]|$)/g;
const user = /[^\s:@/"'`<>\\]{0,255}/y;
/** The user information ends at these. A password may contain any other character. */
const ends = /[\s"'`<>\\]/;
const port = /^\d{1,5}(?=[/?#\s"'`<>\\,;)\]}|]|$)/;

/** Finds the password of "scheme://user:password@host", whatever characters it has, and a token in place of the user. */
export function urlSecrets(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  let sign = text.indexOf("@");
  for (let at = text.indexOf("://"); at >= 0; at = text.indexOf("://", at + 3)) {
    if (sign >= 0 && sign < at) sign = text.indexOf("@", at);
    if (sign < 0) break;
    const span = sign - at > authorityLimit ? undefined : userInformation(text, at + 3);
    if (span === undefined) continue;
    spans.push(span);
    at = Math.max(at, span.end - 3);
  }
  return [...spans, ...thinPasswords(text), ...driverPasswords(text)];
}

function userInformation(text: string, start: number): TextSpan | undefined {
  user.lastIndex = start;
  const name = user.exec(text)?.[0] ?? "";
  const colon = start + name.length;
  const after = text.charAt(colon);
  if (after === "@") return isToken(name) ? { start, end: colon } : undefined;
  if (after !== ":") return undefined;
  const rest = text.slice(colon + 1, colon + 1 + authorityLimit);
  const length = rest.search(ends);
  const authority = length < 0 ? rest : rest.slice(0, length);
  if (port.test(authority) && (name !== "" || !authority.includes("@"))) return undefined;
  const at = endOfPassword(authority);
  if (at === undefined || isTrivial(authority.slice(0, at)) || isReference(authority.slice(0, at))) return undefined;
  return { start: colon + 1, end: colon + 1 + at };
}

/** A user name that belongs to no person and no program. */
function isToken(name: string): boolean {
  if (!/^[\w.~%+=-]{12,}$/.test(name) || !looksRandom(name, 12)) return false;
  if (name.length >= 20 && /^[\w-]+$/.test(name)) return true;
  // Longer than a word with a number at its end.
  const [longest = ""] = (name.match(/[A-Za-z0-9]+/g) ?? []).sort((a, b) => b.length - a.length);
  return longest.length >= 12 && (longest.match(/[a-z][0-9]|[0-9][A-Za-z]|[a-z][A-Z]/g) ?? []).length >= 4;
}

/** The user information ends at the first "@" before a host; else at the last one. */
function endOfPassword(authority: string): number | undefined {
  host.lastIndex = 0;
  const found = host.exec(authority);
  const at = found?.index ?? authority.lastIndexOf("@");
  return at <= 0 ? undefined : at;
}

/** A shell's variable. */
function isReference(password: string): boolean {
  return /^\$\w+$|^\$\{[^}]*\}$/.test(password);
}

/** "jdbc:oracle:thin:scott/tiger@host". */
function thinPasswords(text: string): TextSpan[] {
  return Array.from(
    text.matchAll(/\bthin:([\w$#.-]{1,100}\/)([^\s@"']{1,200})@/g),
    ({ index, 0: whole, 2: password = "" }) => {
      const end = index + whole.length - 1;
      return { start: end - password.length, end };
    },
  );
}

/** `shop:hunter2@tcp(db:3306)/shop`, of drivers in Go. */
function driverPasswords(text: string): TextSpan[] {
  return Array.from(text.matchAll(/@(?:tcp6?|udp|unix|cloudsql(?:-mysql)?)\(/g)).flatMap(({ index: end }) => {
    const before = text.slice(Math.max(0, end - 300), end);
    const from = before.search(/[^\s"'`=]*$/);
    const colon = before.indexOf(":", from);
    const isAddress = before.startsWith("://", colon);
    if (colon < 0 || isAddress || colon + 1 === before.length) return [];
    const password = before.slice(colon + 1);
    return isTrivial(password) || isReference(password) ? [] : [{ start: end - password.length, end }];
  });
}
