/**
 * Whether a name marks its value as a secret. Two kinds of names, because a false alarm costs more in code and prose
 * than in an environment:
 *
 * - Written as environment variables are (`DB_PASSWORD`, no lower case): it holds SECRET, TOKEN, PASSWORD, PASSWD,
 *   PASSPHRASE, CREDENTIAL or KEY anywhere, so `TOKEN_FILE` and `PUBLIC_KEY` too, but not `TOKEN_TYPE` or `SECRET_NAME`. KEY does not count inside ordinary
 *   words (`MONKEY`, `KEYBOARD_LAYOUT`). A last word that ends in PASS or PWD counts (`DBPASS`, `MYSQL_PWD`) if it is
 *   more than that and no ordinary word (`BYPASS`), and a last word AUTH that is not alone (`BASIC_AUTH`).
 * - Any other (`dbPassword`, `client-secret`, `secretName`): its last word names the value, so it must end in one
 *   of those words. A last word `key` only counts with what it opens (`apiKey`, `secret_access_key`): a bare `key`, and
 *   `cacheKey`, `primary_key`, `monkey`, are no secrets. `pass`, `pwd` and `auth` only count after another word.
 */
export function isSecretName(name: string): boolean {
  const known = judged.get(name);
  if (known !== undefined) return known;
  const isSecret = isEnvironmentName(name) ? isSecretEnvironmentName(name) : endsInSecret(wordsOf(name));
  if (judged.size >= maxJudged) judged.clear();
  if (name.length <= longestJudged) judged.set(name, isSecret);
  return isSecret;
}

/** The same few names recur. */
const judged = new Map<string, boolean>();
const [maxJudged, longestJudged] = [1_000, 100];

export function isEnvironmentName(name: string): boolean {
  return /^[A-Z_][A-Z0-9_]*$/.test(name);
}

/** Names whose small numbers are counts: `max_tokens`, `access-key: 3`. */
export function mayCount(name: string): boolean {
  return !isEnvironmentName(name) && /(?:tokens?|keys?|pass)$/i.test(name);
}

const secretWord =
  /SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|CREDENTIAL|CONNECTION_STRING|CONNECTIONSTRING|WEBHOOK_URL/;
/** Last words of names that are about a secret, and do not hold it. */
const aboutIt =
  /^(?:NAME|LENGTH|SIZE|TYPE|COUNT|TTL|ENABLED|REQUIRED|AUDIENCE|ALGORITHM|EXPIRY|EXPIRES|EXPIRATION|LIFETIME|TIMEOUT|POLICY|ENDPOINT|ISSUER|VERSION|FORMAT|PREFIX)$/;
const ordinaryWordWithKey =
  /^(?:KEYBOARDS?|KEYMAPS?|KEYWORDS?|KEYSYMS?|KEYCODES?|KEYPADS?|KEYNOTES?|KEYSPACES?|KEYCLOAK|KEYSTONE|MONKEYS?|DONKEYS?|TURKEY|HOTKEYS?|JOCKEYS?|HOCKEY|WHISKEY|JENKEY)$/;
const ordinaryWordWithPass =
  /^(?:BY|COM|ENCOM|TRES|SUR|OVER|UNDER|ASK|LAST|MULTI|SINGLE|FIRST|SECOND|THIRD|ONE|TWO|PRE|POST|RENDER|TEST|TESTS|ALL|MAX|MIN|NUM)$/i;

function isSecretEnvironmentName(name: string): boolean {
  const words = name.split("_").filter(Boolean);
  if (aboutIt.test(words.at(-1) ?? "")) return false;
  if (secretWord.test(name)) return true;
  if (words.some((word) => word.includes("KEY") && !ordinaryWordWithKey.test(word))) return true;
  const [last = "", before = ""] = words.toReversed();
  if (last === "AUTH") return before !== "";
  if (/^CREDS?$/.test(last)) return true;
  // Personal access tokens, and keys of a wireless network.
  if (/^(?:PAT|PSK)$/.test(last)) return before !== "";
  const opens = /^(.*)(?:PASS|PWD|PW)$/.exec(last)?.[1];
  if (opens === undefined) return false;
  return opens === ""
    ? before !== "" && !ordinaryWordWithPass.test(before)
    : opens !== "OLD" && !ordinaryWordWithPass.test(opens);
}

const secretEnding = /(?:secrets?|tokens?|passwords?|passwd|passphrase|passcode|pswd|credentials?)$/;
const fusedPass = /^(?:require|auth|master|user|db|root|admin|smtp|ssh|mail|key|store|trust|http|ftp|ldap|bind)pass$/;
/** Words after the secret that still mean the secret itself. */
const formOfValue = /^(?:\d+|value|val|data|string|str|hash|plain|plaintext|text|base64|b64|enc|encoded|encrypted)$/;
const opener =
  /(?:api|access|secret|private|ssh|auth|account|encryption|encrypt|signing|sign|master|shared|license|deploy|client|service|admin|app|application|session|storage|hmac|jwt|aes|rsa|ssl|tls|crypto|root|subscription|unseal|recovery|webhook|certificate)$/;

function endsInSecret(words: readonly string[]): boolean {
  const meaning = words.toReversed();
  while (meaning.length > 1 && formOfValue.test(meaning[0] ?? "")) meaning.shift();
  const [last = "", before = ""] = meaning;
  if (last === "jsonwebtoken" || before === "public") return false;
  if (secretEnding.test(last)) return true;
  if (last === "base" && before === "key") return meaning[2] === "secret";
  if (last === "id" && before === "secret") return meaning.length === 2;
  if (fusedPass.test(last)) return true;
  if (last === "psk" || (last === "pat" && /^(?:github|gh|gitlab|azure|ado|devops|access|git)$/.test(before)))
    return true;
  if (/^(?:pass|pwd|pw)$/.test(last)) return before !== "" && !ordinaryWordWithPass.test(before) && before !== "old";
  const lock = /^(.*?)keys?$/.exec(last)?.[1];
  return lock !== undefined && opener.test(lock || before);
}

const literal = /^(?:true|false|null|nil|<nil>|none|undefined|yes|no|on|off|\*+|\.{3,}|)$/i;
/** A placeholder for a value: `$NAME`, `${…}`, `$(…)`, `{{ … }}`, `%NAME%`, `<…>`, `[…]`. */
const standsIn =
  /^(?:\$[A-Z_][A-Z0-9_]*|\$\d|\$\{[^}]*\}|\$\{\{.*\}\}|\$\([^)]*\)|\{\{.*\}\}|%[A-Z_]+%|<[a-zA-Z][^<>]*>(?:\s{2}.*)?|\[[A-Za-z -]*\]|\(sensitive value\))$/s;

/** A value that can't be a secret, whatever its name, or that is masked already. */
export function isTrivial(value: string): boolean {
  if (value.length > 300) return false;
  return /^[$%<[{(]/.test(value) ? standsIn.test(value) || literal.test(value) : literal.test(value);
}

/** `key` counts after one of these words, as in "API key". */
export function opensWith(word: string): boolean {
  return opener.test(word.toLowerCase());
}

/** "awsSecretAccess_key" → aws, secret, access, key. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+|(?<=[a-z])(?=\d+(?:[^a-z0-9]|$))/)
    .filter(Boolean);
}
