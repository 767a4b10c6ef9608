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

/** Whether a value without quotes is code that reads or declares a secret. `isShell`: `NAME=value`, which has no calls. */
export function isCode(value: string, isShell: boolean): boolean {
  return reference.test(value) || (!isShell && (type.test(value) || call.test(value) || path.test(value)));
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
