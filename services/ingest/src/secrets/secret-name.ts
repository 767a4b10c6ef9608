/**
 * Whether a name says that its value is a secret. Two kinds of names, because a false alarm costs more in code and
 * prose than in an environment:
 *
 * - Written as environment variables are (`DB_PASSWORD`, no lower case): it holds SECRET, TOKEN, PASSWORD, PASSWD,
 *   PASSPHRASE, CREDENTIAL or KEY anywhere, so `TOKEN_FILE` and `PUBLIC_KEY` too. KEY does not count inside ordinary
 *   words (`MONKEY`, `KEYBOARD_LAYOUT`). A last word PASS or PWD counts if it is not alone.
 * - Any other (`dbPassword`, `client-secret`, `secretName`): its last word says what the value is, so it must end in one
 *   of those words. A last word `key` only counts with what it opens (`apiKey`, `secret_access_key`): a bare `key`, and
 *   `cacheKey`, `primary_key`, `monkey`, are no secrets.
 */
export function isSecretName(name: string): boolean {
  return isEnvironmentName(name) ? isSecretEnvironmentName(name) : endsInSecret(wordsOf(name));
}

export function isEnvironmentName(name: string): boolean {
  return /^[A-Z_][A-Z0-9_]*$/.test(name);
}

/** Names whose small numbers are counts: `max_tokens`, `access-key: 3`. */
export function mayCount(name: string): boolean {
  return !isEnvironmentName(name) && /(?:tokens?|keys?)$/i.test(name);
}

const secretWord = /SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL/;
const ordinaryWordWithKey =
  /^(?:KEYBOARDS?|KEYMAPS?|KEYWORDS?|KEYSYMS?|KEYCODES?|KEYPADS?|KEYNOTES?|KEYSPACES?|KEYCLOAK|KEYSTONE|MONKEYS?|DONKEYS?|TURKEY|HOTKEYS?|JOCKEYS?|HOCKEY|WHISKEY|JENKEY)$/;

function isSecretEnvironmentName(name: string): boolean {
  if (secretWord.test(name)) return true;
  const words = name.split("_").filter(Boolean);
  if (words.some((word) => word.includes("KEY") && !ordinaryWordWithKey.test(word))) return true;
  return words.length > 1 && /^(?:PASS|PWD)$/.test(words.at(-1) ?? "");
}

const secretEnding = /(?:secrets?|tokens?|passwords?|passwd|passphrase|credentials?)$/;
/** Words after the secret that still mean the secret itself. */
const formOfValue = /^(?:\d+|value|val|data|string|str|hash|plain|plaintext|text|base64|b64|enc|encoded|encrypted)$/;
const opener =
  /(?:api|access|secret|private|ssh|auth|account|encryption|encrypt|signing|sign|master|shared|license|deploy|client|service|admin|app|application|session|storage|hmac|jwt|aes|rsa|ssl|tls|crypto|root)$/;

function endsInSecret(words: readonly string[]): boolean {
  const meaning = words.toReversed();
  while (meaning.length > 1 && formOfValue.test(meaning[0] ?? "")) meaning.shift();
  const [last = "", before = ""] = meaning;
  if (secretEnding.test(last)) return true;
  const lock = /^(.*?)keys?$/.exec(last)?.[1];
  return lock !== undefined && opener.test(lock || before);
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

/** A value that can't be a secret, whatever its name, or is hidden already. */
export function isTrivial(value: string): boolean {
  return /^(?:true|false|null|none|yes|no|on|off|\*+|)$/i.test(value);
}
