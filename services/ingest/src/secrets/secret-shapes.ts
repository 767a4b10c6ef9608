import type { Span } from "./span.ts";

/**
 * Secrets that can be known by their own looks, wherever they stand. Every pattern begins with fixed characters and has
 * no two parts that could share text, so that a failed match costs no more than what it looked at: time stays linear.
 */
const tokenShapes: readonly RegExp[] = [
  /tdk_[A-Za-z0-9_-]{43}/, // our own
  /gh[pousr]_[A-Za-z0-9]{30,}/, // GitHub
  /github_pat_[A-Za-z0-9_]{22,}/,
  /glpat-[A-Za-z0-9_-]{20,}/, // GitLab
  /(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])/, // AWS
  /AIza[0-9A-Za-z_-]{35}/, // Google
  /ya29\.[0-9A-Za-z_-]{20,}/,
  /xox[abeoprs]-[A-Za-z0-9-]{10,}/, // Slack
  /xapp-[A-Za-z0-9-]{10,}/,
  /hooks\.slack\.com\/services\/[A-Za-z0-9/]{20,}/,
  /npm_[A-Za-z0-9]{36,}/,
  /pypi-[A-Za-z0-9_-]{50,}/,
  /dckr_pat_[A-Za-z0-9_-]{20,}/, // Docker Hub
  /[rs]k_(?:live|test)_[A-Za-z0-9]{16,}/, // Stripe
  /sk-(?:proj|ant|svcacct)-[A-Za-z0-9_-]{20,}/, // OpenAI, Anthropic
  /hv[bs]\.[A-Za-z0-9_-]{24,}/, // Vault
  // JWT. Only at the start of a run of its characters: else each "eyJ" of a long run would read it to its end.
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/,
];

/** All of them in one pass. */
const token = new RegExp(tokenShapes.map(({ source }) => source).join("|"), "g");

/** "Authorization: Basic …" as header, JSON or Go struct; a scheme alone counts if what follows can be no word. */
const authorization =
  /authorization["'\\]{0,2}[ \t]{0,4}[:=][ \t]{0,4}["'\\[]{0,3}(?:(?:bearer|basic|digest|token|apikey)[ \t]{1,4})?/gi;
const scheme = /\b(?:bearer|basic)[ \t]{1,4}/gi;
const credentials = /[A-Za-z0-9+/=._~-]{8,}/y;

export function shapedSecrets(text: string): Span[] {
  const tokens = Array.from(text.matchAll(token), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }));
  return [...tokens, ...authorizations(text), ...urlPasswords(text), ...privateKeys(text)];
}

function* authorizations(text: string): Iterable<Span> {
  for (const introduction of [authorization, scheme]) {
    let searched = 0;
    for (const match of text.matchAll(introduction)) {
      if (match.index < searched) continue;
      const start = match.index + match[0].length;
      credentials.lastIndex = start;
      const value = credentials.exec(text)?.[0] ?? "";
      searched = start + value.length;
      // "authorization: required" and "basic authentication" are prose.
      if (/\d|[a-z][A-Z]/.test(value.slice(0, 200)) || value.endsWith("=")) yield { start, end: searched };
    }
  }
}

const endsAuthority = /[/?#\s"'`<>\\]/;
/** Longer user information is none. */
const authorityLimit = 2_000;

/** The password of "scheme://user:password@host". */
function* urlPasswords(text: string): Iterable<Span> {
  for (let at = text.indexOf("://"); at >= 0; at = text.indexOf("://", at + 3)) {
    const from = at + 3;
    const length = text.slice(from, from + authorityLimit).search(endsAuthority);
    const authority = text.slice(from, length < 0 ? from + authorityLimit : from + length);
    const [colon, host] = [authority.indexOf(":"), authority.lastIndexOf("@")];
    if (colon >= 0 && colon < host) yield { start: from + colon + 1, end: from + host };
  }
}

const privateKeyStart = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;

/** Without the lines around it; one that is cut off goes to the end of the text. */
function* privateKeys(text: string): Iterable<Span> {
  let searched = 0;
  for (const { index, 0: begin } of text.matchAll(privateKeyStart)) {
    if (index < searched) continue;
    const start = index + begin.length;
    const end = text.indexOf("-----END", start);
    searched = end < 0 ? text.length : end;
    yield { start, end: searched };
  }
}
