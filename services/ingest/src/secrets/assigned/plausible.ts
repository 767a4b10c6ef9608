import { isTrivial, mayCount } from "../secret-name.ts";

/** Words in the position of a bare value: types, parts of a sentence. */
const words = new Set(
  (
    "string number boolean object buffer bytes str int any char void symbol secret token password optional required " +
    "missing invalid expired empty unset default inherit include omit latest hidden null " +
    "via the is are was a an or and to for from with in of by as be can must may not if this that it flag option"
  ).split(" "),
);

/** True for a value of a secret's name that can't be a secret. `isSet`: it has quotes, or comes right after `=`. */
export function isNoSecret(value: string, name: string, isSet: boolean): boolean {
  if (isTrivial(value) || isSealed(value) || /^[)\]};,.\s]*$/.test(value)) return true;
  // The fingerprint of a public key.
  if (/GPG_KEYS?(?:_?ID)?$/i.test(name) && /^[0-9A-F\s]{8,200}$/i.test(value)) return true;
  if (!isSet && value.length < 12 && words.has(value.replace(/^[(!]+|[,;:.)?]+$/g, "").toLowerCase())) return true;
  // A Ruby symbol, which names a type.
  if (!isSet && /^:[a-z_]{1,30}$/.test(value)) return true;
  if (mayCount(name) && /^\d{1,9}$/.test(value)) return true;
  // The version of a package with such a name.
  if (/^[~^]?v?\d{1,5}\.\d{1,5}\.\d{1,8}(?:[-+][\w.-]{1,40})?$/.test(value)) return true;
  // The path of a program, a directory or a file: GIT_ASKPASS, OLDPWD, TOKEN_FILE.
  return (
    /(?:PASS|PWD|FILE|PATH|DIR|HELPER|BIN|CMD|COMMAND|SOCK|STORE|HOME)$/i.test(name) &&
    /^(?:\/|~|\.{1,2}\/|[A-Za-z]:\\)/.test(value) &&
    value.length > 1
  );
}

/** Encrypted, or the address of a secret that is kept elsewhere. */
const sealed =
  /^(?:ENC\[|ENC\(|\{cipher\}|!vault\b|\$ANSIBLE_VAULT|Ag[A-D][A-Za-z0-9+/]{120,}={0,2}$|op:\/\/|ref\+\w|vault:[\w/-]+|(?:aws)?ssm:|arn:aws[\w-]*:(?:secretsmanager|ssm|kms):|projects\/[^/\s]+\/secrets\/|secretref:|keyvault:|@Microsoft\.KeyVault|sm:\/\/|gcp-?secret|akv:\/\/|env:[A-Z_]+$|file:[/.])/;

export function isSealed(value: string): boolean {
  return sealed.test(value);
}

const ways =
  /^(?:\d|enabled?|disabled?|always|never|auto|any|all|basic|digest|plain|login|cram-md5|md5|ntlm|negotiate|kerberos|gssapi|sasl|oauth2?|xoauth2|oauthbearer|oidc|saml|ldap|iam|aws|gcp|azure|jwt|bearer|apikey|api-key|trust|peer|certs?|certificate|m?tls|ssl|ssh|publickey|anonymous|external|internal|local|simple|scram(?:-sha-\d{1,3})?)$/i;

/** True for a value of `…_AUTH` that states whether or how or where to log in, or names a file. */
export function isMethodName(value: string): boolean {
  return (
    ways.test(value) ||
    /^(?:\/|\.{1,2}\/|~)/.test(value) ||
    /^[a-z]{2,10}:\/\//i.test(value) ||
    words.has(value.toLowerCase())
  );
}

/** Letters and digits are mixed, as in generated text and in no word. */
export function looksRandom(value: string, least = 6): boolean {
  return value.length >= least && /\d/.test(value) && /[A-Za-z]/.test(value) && !/^[\w.+-]*:\/\//.test(value);
}

/** Base64 of "user:password", as docker stores it. */
export function isBasicAuth(value: string): boolean {
  if (value.length < 6 || value.length > 4_000 || !/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return false;
  return /^[\x20-\x7e]+:[\x20-\x7e]*$/.test(Buffer.from(value, "base64").toString("latin1"));
}
