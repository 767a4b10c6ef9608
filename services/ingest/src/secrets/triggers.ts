import { otherLanguageTriggers } from "./assigned/other-languages.ts";
import { base64Triggers } from "./base64-secrets.ts";
import { tokenPrefixes } from "./tokens/token-secrets.ts";

/** Which rules may find something in a text. */
export const may = {
  /** A name that marks its value as a secret. */
  name: 1,
  /** A token of a known shape. */
  token: 2,
  url: 4,
  /** Credentials of a request. */
  header: 8,
  privateKey: 16,
  command: 32,
  /** A token without a fixed beginning. */
  oddToken: 64,
  /** A word for a password that is not English. */
  otherLanguage: 128,
  /** A secret's name in base64. */
  base64: 256,
} as const;

/** The first four characters that the rules of a kind match, without regard to case. `?`: any character. */
const beginnings: readonly (readonly [number, readonly string[]])[] = [
  [
    may.name,
    [
      "secr",
      "toke",
      "pass",
      "?pwd",
      "?key",
      "cred",
      "auth",
      "sign",
      "sig=",
      "code",
      "onst",
      "sona",
      "_pat",
      "_psk",
      "-psk",
      "?_pw",
      "?-pw",
      "?.pw",
      "?pw=",
      "?pw:",
      '?pw"',
      "?psk",
    ],
  ],
  [may.otherLanguage, otherLanguageTriggers],
  [may.base64, base64Triggers],
  [may.token, tokenPrefixes.map((prefix) => prefix.padEnd(4, "?").slice(0, 4))],
  [
    may.oddToken,
    [
      "?eyJ",
      ":AA?",
      "webh",
      "atla",
      "jqqj",
      "?-us",
      "nral",
      ":$ap",
      ":$2?",
      ":$5$",
      ":$6$",
      ":$y$",
      ":$ar",
      ...[..."0123456789"].map((digit) => `${digit}Q~?`),
    ],
  ],
  [may.oddToken, [..."0123456789abcdef"].map((digit) => `?SK${digit}`)],
  [may.url, ["?://", "thin", "tcp(", "cp6(", "nix(", "udp(", "sql("]],
  [may.header, ["auth", "bear", "basi", "cook"]],
  [may.privateKey, ["-BEG", "Priv"]],
  [
    may.command,
    [
      "curl",
      "ttp ",
      "lftp",
      "smbc",
      "rpcc",
      "reds",
      "logi",
      "uplo",
      "ysql",
      "aria",
      "sshp",
      "is-c",
      "mong",
      "lcmd",
      "ldap",
      "htpa",
      "zip ",
      "enss",
      "eyto",
      "-lit",
      "vaul",
      "oetr",
      "oser",
      "qlpl",
      "qlld",
      "expd",
      "impd",
      "chpa",
      "snyk",
      "iden",
      "yphe",
      "abbi",
      "7z ?",
      "7za ",
      "pmit",
      "-std",
      "free",
      "wpa_",
      "erad",
      "ermo",
      "/use",
    ],
  ],
];

/** Indexed by the last five bits of each of four characters, which are the same for both cases of a letter. */
const table = new Uint16Array(1 << 20);
for (const [rules, starts] of beginnings) {
  for (const start of starts) for (const hash of hashesOf(start)) table[hash] = (table[hash] ?? 0) | rules;
}

function hashesOf(start: string): readonly number[] {
  let hashes = [0];
  for (const one of start) {
    const codes = one === "?" ? Array.from({ length: 32 }, (_, code) => code) : [one.charCodeAt(0) & 31];
    hashes = hashes.flatMap((hash) => codes.map((code) => (hash << 5) | code));
  }
  return hashes;
}

export type Triggers = {
  /** A combination of `may`; 0: there is no secret in the text. */
  readonly rules: number;
  /** Positions at which a token may begin. */
  readonly places: readonly number[];
};

const none: Triggers = { rules: 0, places: [] };

/** Makes one pass over the text. Most texts need no more, as they have no secret. */
export function triggersIn(text: string): Triggers {
  let rules = 0;
  let places: number[] | undefined;
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) {
    hash = ((hash << 5) | (text.charCodeAt(at) & 31)) & 0xfffff;
    const found = table[hash] ?? 0;
    if (found === 0) continue;
    rules |= found;
    if ((found & may.token) !== 0) {
      places ??= [];
      places.push(at - 3);
    }
  }
  return rules === 0 ? none : { rules, places: places ?? [] };
}

/**
 * False: no rule finds anything in any text of the bytes. One pass over a whole message costs a fifth of passes over each
 * of its texts. Fixed characters of the rules are ASCII, whose bytes are their codes, and `?` stands for any byte too.
 */
export function mayHoldSecrets(bytes: Uint8Array): boolean {
  let hash = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    hash = ((hash << 5) | ((bytes[at] ?? 0) & 31)) & 0xfffff;
    if (table[hash] !== 0) return true;
  }
  return false;
}
