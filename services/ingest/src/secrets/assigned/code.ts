/** Objects that code reads a secret from. */
const roots =
  "os|process|import|env|ENV|System|Deno|Bun|Environment|var|local|module|data|self|this|cls|settings|config|cfg|conf|" +
  "configuration|args|argv|opts|options|params|props|state|ctx|context|req|request|res|response|event|secrets|vars|inputs|" +
  "steps|needs|github|each|count|terraform|random_\\w+|aws_\\w+|azurerm_\\w+|google_\\w+|kubernetes_\\w+|vault_\\w+|tls_\\w+|" +
  "account|credentials?|creds|session|body|payload|input|form|instance|resource|output|outputs|Values|viper|flags?|values|" +
  "db|client|result|user|auth|row|record|model|item|builder|app|server|parameters|environment|\\$this|\\$_ENV|\\$_SERVER|@\\w+";
const reference = new RegExp(String.raw`^(?:await\s+|new\s+|\*|&)?(?:${roots})(?:\??\.|\[|->|::)`);
/** A function's call; a bare name before a parenthesis. */
const call = /^(?:await\s+|new\s+|!|&|\*)?[A-Za-z_$][\w$]{0,60}(?:(?:\.|::|->)[A-Za-z_$][\w$]{0,60}){0,6}!?\(/;
/** `Rails.application.credentials.secret`. */
const path = /^[A-Za-z_$]+(?:\.[A-Za-z_$]+){2,8}[;,]?$/;
const type =
  /^(?:[A-Z]\w{0,40}\[[\w[\], |.]{1,80}\]|(?:Option|Optional|Vec|Maybe|Promise|Array|List|Union|Box|Arc|Secret|Annotated|Nullable|Partial|Set|Map|Dict|Record|Observable|Signal|Ref|InputSignal|Cow|ReadonlyArray)\s?[<[]|&(?:'\w+ )?(?:mut )?(?:str|String|\[u8\])\b|(?:SecretStr|SecretString|SecureString|Option|std::string|CharSequence|\[\]byte|\*string|\[\]string|char\s?\[\]|byte\s?\[\])\b|(?:string|str|String|bytes|number|boolean|any|unknown|Any|Text)(?:\[\])?\s*(?:$|[|=;,?)!&].*$))/;
const strings = /"[^"]*(?:"|$)|'[^']*(?:'|$)|`[^`]*(?:`|$)/g;
const name = String.raw`[A-Za-z_$@][\w$]*(?:-\w+)*`;
/** Brackets with what is in them. Without the last one only where the value was cut off: at a quote, or at a line's end. */
const bracketsAround = (inner: string) => String.raw`[([](?:[^()[\]#%^~;]|${inner})*(?:[)\]]|(?<=[([{,"]\s?)$)`;
const brackets = bracketsAround(bracketsAround(bracketsAround("(?!)")));
/** Names that are joined by dots, with calls and indexes; then only what ends them, or an operator. */
const expression = new RegExp(
  String.raw`^((?:await\s+|new\s+|[!*&])?${name}(?:!?(?:\??\.|->|::)(?:${name}|$)|!?(?:\?\.)?${brackets})*(?:!(?<=\benv\.\w+!)|!(?=[,;)\]}]))?)` +
    String.raw`(?:[,;:)\]}]*$|[,;:)\]}]+\s|\s+(?:[-+*/?:|&=<>!]{1,3}|or|and|if|unless|else|as|in|is)(?:\s|$))`,
);
const typeExpression = /^([\w<>[\](),|.&:'*?=;-]+[!,;)}]*)(?:\s|$)/;
/** Words of names with a digit. */
const withDigits =
  /^(?:\d{1,3}|(?:s3|ec2|k8s|i18n|x509|b64|(?:u|i|f|u?int|float)(?:8|16|32|64)|oauth2|auth0|ipv[46]|(?:v|sha|base|md|[hre]s|rsa|aes|key|token|secret|pass|password|user|db)\d{1,3}))$/i;

/** A part of a name that is a word, and not random. */
const isWord = (part: string) => (/\d/.test(part) ? withDigits.test(part) : !/[b-df-hj-np-tv-xz]{6}/i.test(part));

/** Whether all of the value is code. A password may begin as code does: `user.2024!x`. */
function isWhollyCode(value: string, whole: RegExp): boolean {
  const code = whole.exec(value.replace(strings, '""'))?.[1];
  if (code === undefined || /(?:[a-z]{1,2}[A-Z]){4}/.test(code)) return false;
  return code.split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/).every(isWord);
}

/** Whether a value without quotes is code that reads or declares a secret. `isShell`: `NAME=value`, which has no calls. */
export function isCode(value: string, isShell: boolean): boolean {
  if (!isShell && type.test(value) && isWhollyCode(value, typeExpression)) return true;
  return (
    (reference.test(value) || (!isShell && (call.test(value) || path.test(value)))) && isWhollyCode(value, expression)
  );
}

/** What targets of a Makefile begin with. */
const verb =
  /^(?:build|get|print|create|rotate|gen|generate|check|verify|update|install|fetch|show|delete|seal|unseal|encrypt|decrypt|renew|revoke|copy|load|init|setup|make|lint|scan|list|find|add|remove|rm|validate|change|dump|export|import|apply|ensure|push|pull|test|clean|require|requires|needs|has|use|uses|with|without|missing|invalid|reset|forgot|no)[-_.][\w.-]+$/;

/** `build-secrets: deps`: a target of a Makefile with what it needs. */
export function isTarget(name: string, value: string): boolean {
  return (
    verb.test(name) &&
    /^(?:;.*|\|.*|[A-Za-z$][\w./$(){}-]*(?:\s+[A-Za-z$|][\w./$(){}-]*)*)$/.test(value) &&
    !/\d[A-Za-z]+\d/.test(value)
  );
}
