import { bareValue, quotedValue, skipBlanks } from "./assigned/values.ts";
import { isTrivial } from "./secret-name.ts";
import type { TextSpan } from "./span.ts";

type Command = {
  /** The line before the flag. */
  readonly called: RegExp;
  /** Ends right before the value. */
  readonly flag: RegExp;
  /** The value is what another command writes to it. */
  readonly isPiped?: boolean;
  /** The flag comes after the name of its command. */
  readonly isBefore?: boolean;
  /** The separator of `user:password`: only the text after it is secret. Absent: all of it. */
  readonly after?: string;
  /** The last occurrence of this sign ends the value. */
  readonly until?: string;
};

/** A path may stand before the name of a command. */
const start = "(?:^|[\\s\"'`(\\[|;&/])";
const or = (...names: readonly string[]) => new RegExp(`${start}(?:${names.join("|")})[\\s"'\`,]`, "i");
const flag = (pattern: string) => new RegExp(`[\\s"'\`,](?:${pattern})`, "g");

const login =
  /\b(?:docker|podman|nerdctl|buildah|skopeo|helm|oras|crane|regctl|az|cosign|registry|ctr|twine|oc|argocd|rosa)\b.{0,200}\s(?:login|upload)\s/i;

/** Secrets that tools take by flags with ordinary names. */
const commands: readonly Command[] = [
  { called: or("curl"), flag: flag("-[fgiklnqsvLNSOJ]{0,8}u[= ]?|--user[= ]|-U[= ]?|--proxy-user[= ]"), after: ":" },
  { called: or("curl"), flag: flag("--oauth2-bearer[= ]") },
  { called: or("http", "https", "ab"), flag: flag("-[aA][= ]|--auth[= ]"), after: ":" },
  { called: or("lftp"), flag: flag("-u[= ]?"), after: "," },
  { called: or("smbclient", "rpcclient", "net"), flag: flag("-U[= ]?|--user[= ]"), after: "%" },
  { called: /\b(?:podman|skopeo|buildah|crane|oras)\b/i, flag: flag("--(?:src-|dest-)?creds[= ]"), after: ":" },
  { called: login, flag: flag("-p(?:[= ]|(?=[^\\s=-]))"), isBefore: true },
  {
    called: or("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"),
    flag: flag("-p(?=[^\\s=])"),
  },
  { called: or("sshpass"), flag: flag("-p ?") },
  { called: or("redis-cli"), flag: flag("-a[= ]?|--pass[= ]") },
  { called: or("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"), flag: flag("-p[= ]") },
  { called: or("sqlcmd", "bcp"), flag: flag("-P[= ]?") },
  { called: or("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), flag: flag("-w[= ]?") },
  {
    called: or("htpasswd"),
    // With -n there is no file before the user.
    flag: flag(
      "-(?=[A-Za-z]{0,8}b)(?=[A-Za-z]{0,8}n)[A-Za-z]{2,9} \\S{1,80} |-(?=[A-Za-z]{0,8}b)[A-Za-z]{1,9} \\S{1,200} \\S{1,80} ",
    ),
  },
  { called: or("zip", "unzip"), flag: flag("-P ?") },
  { called: or("openssl", "keytool"), flag: flag("-?-?pass(?:in|out)?[= ](?:pass:)") },
  { called: /\bcreate\s+secret\b/i, flag: flag("--from-literal[= ]"), after: "=" },
  { called: or("vault"), flag: flag("login (?=[^\\s=-][^\\s=]*(?:\\s|$))") },
  { called: or("openssl"), flag: flag("-k[= ]") },
  {
    called: or("sqlplus", "sqlldr", "expdp", "impdp"),
    flag: flag("(?=[\\w$#]{1,60}/[^\\s/]{1,100}@)"),
    after: "/",
    until: "@",
  },
  { called: /\|\s{0,4}(?:sudo\s{1,4})?chpasswd\b/, flag: /(?:echo|printf)\s+(?:-\w+\s+)?/g, after: ":", isPiped: true },
  {
    called:
      /\|\s{0,4}(?:sudo\s{1,4})?(?:docker|podman|nerdctl|helm|oras|crane|regctl|buildah|skopeo|cosign)\b.{0,400}--password-stdin/,
    flag: /(?:echo|printf)\s+(?:-\w+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?/g,
    isPiped: true,
  },
  { called: or("cargo"), flag: flag("login (?=[^\\s=-])") },
  { called: or("useradd", "usermod"), flag: flag("-p[= ]?|--password[= ]") },
  { called: /\bnet\s{1,4}use\b/i, flag: /\/user:\S{1,80}\s{1,4}(?=[^\s/])/gi },
  { called: or("cypher-shell"), flag: flag("-p[= ]") },
  { called: or("7z", "7za", "7zz"), flag: flag("-p(?=[^\\s=])") },
  { called: or("ipmitool"), flag: flag("-P[= ]?") },
  { called: or("xfreerdp", "wlfreerdp"), flag: flag("\\/p:") },
  { called: or("wpa_passphrase"), flag: flag("wpa_passphrase \\S{1,80} ") },
  { called: or("rabbitmqctl"), flag: flag("(?:add_user|change_password|authenticate_user) \\S{1,80} ") },
  { called: or("snyk"), flag: flag("auth (?=[^\\s=-])") },
  { called: /\bcomposer\s+config\b/i, flag: flag("http-basic\\.\\S{1,80} \\S{1,80} ") },
  { called: /\bidentified\b/i, flag: flag("(?:by|BY)\\s{1,4}(?:password\\s{1,4})?(?=['\"])") },
  { called: /\bpoetry\s+config\s+http-basic/i, flag: flag("http-basic\\.\\S{1,80} \\S{1,80} ") },
];

/** The commands of all these tools. */
const anyCommand =
  /curl|\bhttps? |\bab |lftp|smbclient|rpcclient|\bnet |creds|login|upload|mysql|mariadb|sshpass|redis-cli|mongo|sqlcmd|bcp |ldap|htpasswd|zip |openssl|keytool|-literal|vault|poetry|composer|sqlplus|sqlldr|[ei][xm]pdp|chpasswd|snyk|identified|cypher|7z|ipmitool|freerdp|wpa_passphrase|rabbitmqctl|password-stdin|useradd|usermod|\/user:/i;

/** A longer line is no command. */
const longestLine = 20_000;

/** Finds passwords and tokens on command lines, which may continue after a backslash. */
export function commandSecrets(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  for (let from = 0; from < text.length; ) {
    let to = endOfLine(text, from);
    while (to < text.length && text.charAt(to - 1) === "\\" && to - from <= longestLine) to = endOfLine(text, to + 1);
    const line = to - from <= longestLine ? text.slice(from, to) : "";
    if (anyCommand.test(line)) for (const span of secretsOf(line, from)) spans.push(span);
    from = to + 1;
  }
  return spans;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

function secretsOf(line: string, offset: number): TextSpan[] {
  return commands.flatMap(({ called, flag: pattern, isBefore, isPiped, after, until }) => {
    const call = called.exec(line);
    if (call === null) return [];
    // The blank after it may be the one before the flag.
    const from = isBefore === true ? call.index + call[0].length - 1 : call.index;
    pattern.lastIndex = isPiped === true ? 0 : from;
    const spans: TextSpan[] = [];
    for (let found = pattern.exec(line); found !== null; found = pattern.exec(line)) {
      const at = skipBlanks(line, pattern.lastIndex);
      const whole = after === undefined ? wordAt(line, at) : passwordAt(line, at, after);
      const value = until === undefined ? whole : upTo(line, whole, until);
      if (value === undefined || value.start >= value.end) continue;
      pattern.lastIndex = Math.max(pattern.lastIndex, value.end);
      if (isTrivial(line.slice(value.start, value.end)) || isPorts(line.slice(value.start, value.end))) continue;
      spans.push({ start: offset + value.start, end: offset + value.end });
    }
    return spans;
  });
}

/** `-p8080:80`, which belongs to a later command. */
function isPorts(value: string): boolean {
  return /^(?:[\d.]{7,15}:)?\d{1,5}:\d{1,5}(?:\/(?:tcp|udp))?$/.test(value);
}

function upTo(line: string, span: TextSpan | undefined, sign: string): TextSpan | undefined {
  const end = span === undefined ? -1 : line.lastIndexOf(sign, span.end);
  return span && end > span.start ? { start: span.start, end } : undefined;
}

function wordAt(line: string, at: number): TextSpan | undefined {
  return quotedValue(line, at) ?? bareValue(line, at, /[\s"'`]/, false);
}

/** The password of `user:password`, either of which may have quotes of its own; the token of `token:`. */
function passwordAt(line: string, at: number, sign: string): TextSpan | undefined {
  const word = wordAt(line, at);
  if (word === undefined) return undefined;
  const isQuoted = word.start > at;
  if (isQuoted && line.charAt(word.end + 1) === sign) return wordAt(line, word.end + 2);
  const place = line.slice(word.start, word.end).indexOf(sign);
  if (place < 0) return undefined;
  const start = word.start + place + sign.length;
  if (start < word.end) return { start, end: word.end };
  const quoted = isQuoted ? undefined : quotedValue(line, start);
  return quoted ?? (sign === ":" && place >= 8 ? { start: word.start, end: word.start + place } : undefined);
}
