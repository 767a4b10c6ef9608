import type { Kind } from "./candidate.ts";
import { fileIn } from "./places.ts";

type Meaning = { readonly reason: string; readonly pattern: RegExp };

/** What texts mean, whichever tool prints them: the first that matches counts. */
const meanings: readonly Meaning[] = [
  {
    reason: "cancelled",
    pattern:
      /\bcontext cancell?ed|\bcancell?ed\b|\bSIGINT\b|KeyboardInterrupt|\bSIGTERM\b|signal: (?:terminated|interrupt)|^\^C$|\binterrupted\b(?! system)/i,
  },
  {
    reason: "locked",
    pattern:
      /another (?:\w+ )?(?:operation|process) .{0,60}in progress|could not get lock|\bis locked\b|\block (?:timeout|file exists)|index\.lock|acquiring the state lock|unable to lock/i,
  },
  {
    reason: "disk full",
    pattern:
      /no space left on device|\bENOSPC\b|disk quota|disk (?:is )?full|DiskPressure|not enough (?:free )?(?:disk )?space|insufficient (?:disk )?space|don't have enough free space|Auf dem Gerät ist kein Speicherplatz|Aucun espace disponible|No queda espacio|デバイスに空き領域/i,
  },
  {
    reason: "out of memory",
    pattern:
      /OOMKilled|\bOOM\b|out of memory|\bENOMEM\b|cannot allocate memory|OutOfMemory|MemoryError|bad_alloc|signal: killed|(?:code|status) 137\b|heap (?:limit|space)|GC overhead|memory exhausted|^(?:\S+: )?(?:line \d+: +\d+ )?Killed\b/i,
  },
  {
    reason: "port in use",
    pattern:
      /\bEADDRINUSE\b|address (?:is )?already in use|port is already allocated|\bport \S{0,20}\d+\b.{0,60}(?:in use|taken|allocated|not available)|ports are not available|failed to bind.{0,40}in use|would collide with some other application|Adresse (?:wird bereits verwendet|déjà utilisée)|dirección ya está en uso|アドレスは(?:すでに|既に)使用/i,
  },
  {
    reason: "unschedulable",
    pattern: /unschedulable|nodes are available|FailedScheduling|Insufficient (?:cpu|memory)/i,
  },
  {
    reason: "image not found",
    pattern:
      /ImagePullBackOff|ErrImage\w*Pull|manifest (?:for .{1,200} )?(?:unknown|not found)|pull access denied|(?:failed|unable|can't|cannot)\b.{0,20}\bpull|no match for platform|no matching manifest|InvalidImageName|No such image|unable to find image|image .{1,200} (?:not found|can't be pulled|does not exist)|can't be pulled|failed to resolve source metadata|not present with pull policy|MANIFEST_UNKNOWN|NAME_UNKNOWN/i,
  },
  {
    reason: "authentication",
    pattern:
      /authentication (?:failed|required|error)|unauthori[sz]ed|\b401\b|could not read (?:Username|Password)|enter (?:Username|Password)|(?:invalid|bad|wrong|no|incorrect|expired|missing) (?:\w+ )?(?:credentials?|token|password|api key)|Permission denied \((?:publickey|password)|(?:must|need to) be logged in|log ?in (?:is )?required|not logged in|Please (?:log ?in|authenticate)|\brun ['"`]?\w+ (?:auth )?login|server has asked for the client to provide credentials|\bENEEDAUTH\b|Access denied for user|password authentication|Host key verification|signature (?:made by unknown|invalid|verification)|check signature|no public key|no basic auth credentials|ExpiredToken|AccessTokenExpired|NOAUTH|SASL/i,
  },
  {
    reason: "permission",
    pattern:
      /\bforbidden\b|permission denied|\bEACCES\b|\bEPERM\b|access (?:is |was |to .{1,80} )?denied|AccessDenied|denied: |not permitted|\b403\b|read-only file ?system|\bEROFS\b|not authorized|(?:insufficient|missing|lacks?) (?:\w+ )?(?:permission|privilege|scope|access)|must be (?:owner|superuser|root)|are you root|externally-managed-environment|cannot open: file exists|requires? root|Keine Berechtigung|Zugriff verweigert|Permission non accordée|Permiso denegado|許可がありません|権限がありません|Permesso negato|PERMISSION_DENIED|not allowed to|not accessible|not have (?:access|permission|the required|sufficient)|is not (?:in the sudoers|writable)|only .{1,40} (?:can|may) /i,
  },
  {
    reason: "dependency conflict",
    pattern:
      /\bERESOLVE\b|\bEBADENGINE\b|ResolutionImpossible|peer ?(?:dependenc|optional)|conflict(?:ing|s)? (?:with )?(?:\w+ )?(?:requirement|version|package|dependenc)|(?:version|dependency) (?:solving|resolution|resolving|problems?|conflicts?|convergence|tree)|resolving dependenc|(?:not|in)compatible (?:peer|with (?:your|the|this|.{0,40}version)|version)|(?:engine|version) .{1,40}(?:is|are) (?:incompatible|not compatible)|Unsupported (?:engine|class)|(?:package|version) downgrade|more recent version|are in sync|lock ?file\b.{0,120}(?:out of (?:date|sync)|outdated|needs? to be updated|not up to date|does not (?:satisfy|match|contain a compatible)|would have been|is not compatible)|frozen[- ]lockfile|from lock file|(?:update|updates to) (?:the lock file|go\.mod)|--locked was passed|failed to select a version|have conflicting|unmet (?:peer )?dependenc|held broken packages|does not satisfy that requirement|checksum mismatch|Duplicate class|depends on .{1,120}|requires .{1,120} but .{1,120}|\brequires? (?:at least )?(?:version |\w[\w. -]{0,30} )?(?:version |[<>=~^]{1,2} ?v?)\d|installable set|cannot be installed together/i,
  },
  {
    reason: "dependency not found",
    pattern:
      /\bETARGET\b|\bE404\b|\b404\b.{0,80}(?:registry|npm|@)|NU1101|(?:\bno|missing|unknown|not find|unable to (?:find|locate|select|resolve)|can't (?:find|locate|resolve|load)|cannot (?:find|locate|resolve|load|import)|could not (?:load|locate|resolve|transfer|determine|get|find)|couldn't find|failed to (?:load|resolve|download|import|install|get)) (?:a |an |any |the |all |required |matching |such |valid |suitable |installation |named |hex |ruby |python |native |configuration |shared |\S+ )?(?:module|package|crate|gem|librar(?:y|ies)|dependenc(?:y|ies)|plugin|provider|distribution|artifact|formula|candidate|header file)s?\b(?! ['"]?\.{1,2}\/)(?! declar)|\b(?:module|package|crate|gem|librar(?:y|ies)|dependenc(?:y|ies)|plugin|provider|distribution|artifact|extension|formula|candidate|header file)s?\b.{0,120}(?:\bnot (?:be )?(?:found|installed|available|resolved|located)|(?:is|are|was|does|do|could)(?: not|n't) (?:exist|found|available|installed)|is not in)\b|can't locate \S+ in @INC|No module named|ModuleNotFound|PackagesNotFound|no matching version|(?:can't get|could not find) a (?:valid )?version|can't resolve ['"](?![./])|cannot (?:find|open) -?l(?:ib)?\b|cannot find -l|find crate|in any of the sources|required module provides|has no installation candidate|member of the hidden package|is not in (?:std|GOROOT|the npm registry)|missing go\.sum entry|unknown revision|unsatisfiable|nothing provides|no matches? (?:found )?for (?:argument|package)|cannot load such file|unresolved import|(?:could not find|failed to resolve:?) \S+:\S+:|failed to get `|does not have a Release file|could not be found, but was requested|package configuration|method to compile|unable to find a match|Failed to download metadata|does not match any packages|Could not resolve all|Unknown configuration section|invalid version: /i,
  },
  {
    reason: "command not found",
    pattern:
      /(?:command|executable|executable file|program) not found|(?:unknown|invalid|unrecognized|no such) (?:\w+ )?(?:sub)?command|could not find (?:executable|command|program)|(?:ba|da|a|z|c|k)?sh: (?:line )?(?:\d+: )?\S{1,80}: not found|is not recognized as|spawn \S+ ENOENT|not found in \$?PATH|exec: "\S+"|\benv: .{1,60}: No such file|No such file or directory.{0,20}exec|(?:is not|n't|is properly) installed|could not detect|Missing script|(?:rustup|toolchain).{0,60}(?:no default|not installed)|could not determine executable|No such plugin/i,
  },
  {
    reason: "wrong platform",
    pattern:
      /exec format error|unsupported platform|wrong (?:CPU )?architecture|EBADPLATFORM|image platform .{1,80} does not match/i,
  },
  {
    reason: "network",
    pattern:
      /connection (?:refused|reset|closed|timed out|aborted)|\bECONN(?:REFUSED|RESET|ABORTED)\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bE(?:HOST|NET)UNREACH\b|\bETIMEDOUT\b|getaddrinfo|no such host|(?:could not|couldn't|cannot|can't|failed to|unable to|temporary failure) (?:resolve|resolving|translate|lookup|look up)\b.{0,40}(?:host|name|'|$)|name resolution|Name or service not known|no route to host|(?:network|host) (?:is )?unreachable|TLS handshake|i\/o timeout|dial tcp|(?:could not|couldn't|cannot|can't|failed to|unable to|fail to) (?:connect|reach|access|contact|fetch|download|establish)|socket hang up|\bx509: |certificate (?:verif|has expired|signed|is not|validation|problem|error|chain)|self[- ]signed|local issuer|\bSSL (?:certificate|connect|handshake|error|routines)|\b50[0234]\b|unexpected EOF(?! in)|broken pipe|proxy (?:error|connect)|connection to (?:the )?server|did not send|RPC failed|early EOF|no (?:response|answer)|server misbehaving|toomanyrequests|\b429\b|Too Many Requests|rate limit|Read timed out|host not found|offline mode|refused to connect|connection was refused|Verbindungsaufbau abgelehnt|Verbindung (?:abgelehnt|verweigert)|Connexion refusée|Conexión (?:rehusada|rechazada)|接続を拒否|Connessione rifiutata|(?:Nom|Name) ou service inconnu|Der Name oder der Dienst ist nicht bekannt|Nombre o servicio desconocido|ECONNREFUSED|connection to .{1,80} (?:failed|refused)|(?:host|server) .{0,60}(?:is down|unreachable|not reachable)/i,
  },
  {
    reason: "timeout",
    pattern:
      /timed? ?out\b|deadline ?exceeded|could not stabilize|exceeded (?:its progress deadline|the (?:time|timeout))|context deadline|^timeout: |time limit|exceeded the maximum|maximum (?:execution )?time|took too long|no output (?:has been )?received|did not (?:become ready|finish|respond|complete) (?:in|within)|\bETIMEDOUT\b|Zeitüberschreitung|délai .{0,20}(?:dépassé|expiré)|tiempo .{0,30}(?:agotado|excedido)|タイムアウト|within the (?:time|timeout)|not ready after|timeout of \d|\btimeout\b(?!\w)/i,
  },
  {
    reason: "crash",
    pattern:
      /segmentation fault|core dumped|\bSIG(?:SEGV|ABRT|BUS|ILL|FPE)\b|\w+Sanitizer|^panic: |CrashLoopBackOff|back-off restarting|unhandled exception|uncaught exception|terminated with exit code|stack overflow|double free|bus error|nil pointer dereference|access violation|assertion .{1,200} failed|terminate called|attempt to (?:index|call|perform arithmetic)|Call to (?:undefined|a member)|^Aborted\b|status 13[49]\b/i,
  },
  {
    reason: "type error",
    pattern:
      /\bTS[27]\d{3}\b|^Type error: |does not exist on type|mismatched types|not assignable|incompatible (?:types?|pointer|integer)|couldn't match|type mismatch|cannot use .{1,200} as|has incompatible type|CS0029|cannot convert|cannot be converted|inferred type|expected type|no implicit conversion|Argument of type|Incompatible (?:return|types)|\[(?:arg-type|assignment|return-value|attr-defined|call-arg|union-attr|operator|index|override|misc)\]|reportArgumentType|reportAttributeAccess|invalid conversion|no matching function for call|the trait .{1,160} is not|E0308|E0277|has type .{1,200} (?:but|expected)|an expression was expected|expects? .{1,80}(?:type|, .{1,80}given)|but .{1,60} was given|wrong type|no method matching|is not a subtype|cannot unify|does not (?:unify|conform)|type .{1,80} (?:does not match|is not compatible)|type error/i,
  },
  {
    reason: "compile error",
    pattern:
      /syntax ?error|parse error|undefined (?:reference|symbol|method|variable|name|local)|undeclared|cannot find symbol|unresolved reference|unexpected (?:token|end of (?:input|JSON|line|expression)|identifier|indent|character|EOF(?! in archive)|symbol|string|keyword)|IndentationError|\bTS1\d{3}\b|CompileError|undefined function|expected (?:["'`‘]?[;)(\]}{,:]|expression|identifier|declaration|statement)|unterminated|not declared|has no member|no member named|Module parse failed|duplicate symbol|multiple definition|undefined: |declared and not used|imported and not used|Unexpected end-of-input|cannot find (?:value|function|type|macro|trait)|implicit declaration|missing (?:semicolon|return)|unbalanced|mismatched input|name .{1,60} is not defined|undeclared|unknown type name|has no IMPLICIT type|unknown (?:identifier|symbol|variable|function|type|directive type|module attribute)|undefined (?:control sequence|identifier|variable|function|constant|symbol|name)|use of un\w+|not in scope|could not deduce|duplicate (?:definition|declaration)|redefinition|invalid combination|parser error|Unknown tag|Cannot query field|(?:is|was) not declared|isn['’]t defined|already (?:defined|declared)|expecting [`'"\w]|found unexpected|block end|expected one of|Missing (?:closing|opening|terminat)/i,
  },
  {
    reason: "lint",
    pattern:
      /^would reformat|not formatted|Code style issues|code style|formatter would|no-unused|prettier\/|files? would be reformatted|should (?:be|not|use|have|start|end|match) .{0,60}(?:case|letter|such as|instead|sorted|newline|indented)|line too long|trailing (?:whitespace|spaces)|is (?:defined|assigned|imported) but (?:never|un)used|(?:lint|style|formatting) (?:error|issue|violation|check)/i,
  },
  {
    reason: "the cluster refuses the manifest",
    pattern:
      /no matches for kind|error validating|ValidationError\(|unknown field "|unable to recognize|error parsing \S+\.ya?ml|admission webhook .{1,200} denied|field is immutable|may not change once set|strict decoding error|unable to decode "|cannot be handled as a|(?:Deployment|Service|Ingress|StatefulSet|Pod|Job|CronJob|ConfigMap|DaemonSet|Secret|PersistentVolume\w*)\b.{0,120} is invalid:|is invalid: (?:spec|metadata|data)\b|violates PodSecurity|ensure CRDs are installed/i,
  },
  {
    reason: "configuration",
    pattern:
      /(?:invalid|pars\w+|malformed|bad|decod\w+|unmarshal\w*|load\w*|read\w*|valid) .{0,40}\b(?:ya?ml|json|toml)\b|\b(?:ya?ml|json|toml): |no default is configured|wasn't specified|(?:unknown|unrecognized|invalid|unsupported|no such|undefined|bad|illegal) (?:\S+ )?(?:flag|option|argument|setting|configuration|config|section|property|field|key|value|directive|parameter|keyword|attribute|block|version|variable|resource|format|target|task|directory)|environment variable|\benv(?:ironment)? var|(?:is|are|must be) (?:required|set|specified|defined|provided)|not set\b|missing required|required (?:property|key|field|option|argument|variable)|No rule to make target|misconfigur|UnsupportedClassVersion|Non-parseable|could not find method|problem occurred evaluating|Improperly ?Configured|invalid config|configuration|template: |nil pointer evaluating|no configuration|unset\b|not configured|unbound variable|could not find (?:a |any )?(?:config|project)|no (?:\S+ )?(?:file|project) found|validation (?:error|failed)|ValidationError|schema|missing separator|malformed|decoding|unmarshal|not a valid|Unsupported argument|already exists|not found in type|different (?:types|version)|unknown flag|too (?:many|few) arguments|No buildpack groups|failed to detect|unknown filesystem|Source file found twice|section headers|not expected here|\bconfig(?:uration)? (?:file|error|:)|must (?:be|match) (?:one of|set|a )|isn't a (?:valid|known)|not (?:a )?(?:recognized|recognised|known)|additional propert|private key|certificate file/i,
  },
  {
    reason: "not found",
    pattern:
      /no such (?:file|table|container|pod|network|volume|service|object|key|bucket|remote|ref|device|index|column)|not found\b|does not exist|doesn't exist|\bENOENT\b|\b404\b|cannot find|can't (?:find|locate)|could not find|couldn't find|could not be found|cannot stat|can't open|cannot open|not exist\b|could not resolve "|can't resolve|failed to compute cache key|unable to find|pathspec|No such|couldn't open|could not open|missing file|Datei oder Verzeichnis nicht gefunden|Aucun fichier ou dossier|No existe el (?:fichero|archivo)|そのようなファイル|File o directory non esistente|Befehl nicht gefunden|commande introuvable|no existe\b|(?:was|were|is|are) missing|unable to (?:open|read)|nothing (?:found|matche[sd])/i,
  },
  {
    reason: "test failed",
    pattern:
      /^FAIL: |\btests? failed|assertion|coverage .{1,80} threshold|expected .{1,200}(?:but|got|to be|to equal)|verify test failed|not ok \d|thresholds? .{0,80}(?:crossed|exceeded|not met)|not equal to|coverage .{0,80}(?:below|less than|under|minimum)|expected .{1,200}(?:received|actual|found)\b/i,
  },
];

export function meaningOf(text: string): string | undefined {
  // The number of a line is no status of HTTP.
  const said = text.replace(/(\.[a-z]\w{0,3}):\d+/gi, "$1");
  return meanings.find(({ pattern }) => pattern.test(said))?.reason;
}

/** Classes that a line about code can have: in it, "not found" or "invalid" are a compiler's words. */
const ofCode = new Set([
  "type error",
  "compile error",
  "dependency not found",
  "dependency conflict",
  "lint",
  "disk full",
  "out of memory",
  "the cluster refuses the manifest",
]);
/** What these mean in a file of settings is that a setting is wrong. */
const vagueInConfiguration = new Set(["command not found", "compile error", "type error", "test failed", "crash"]);
/** Classes that an exception can have that a program throws on its own. */
const ofExceptions = new Set(["crash", "compile error", "type error", "lint", "test failed"]);

const configurationFile =
  /\.(?:ya?ml|json5?|jsonc|toml|ini|cfg|conf|config|tf|tfvars|hcl|properties|service|env|tpl|nix|lock)$|(?:^|\/)(?:Vagrantfile|Dockerfile|Makefile|CMakeLists\.txt|Jenkinsfile|Tiltfile)$/;
/** What reads settings names itself so when it refuses them. */
const parserName =
  /^(?:[\w$]+[.:]{1,2}){0,12}\w*(?:Parser?|Parsing|Scanner|Decode|Header|Config|Configuration|Toml|Yaml)(?:Error|Exception)\b(?!.*line \d+: \w+ is)/;
const sourceFile =
  /\.(?:[cm]?[jt]sx?|py|go|rs|java|kts?|rb|php|cs|c|cc|cpp|h|hpp|f\d\d|hs|swift|exs?|erl|ml|scala|dart|zig|lua|p[lm]|ps[m1]1?|sh|tex|v|sv|vhd|asm|s|clj|nim|jl|r|graphql|proto|css|s[ac]ss|less)$/i;
const databaseFile = /\.(?:sql|psql|ddl)$/;

export type Evidence = {
  readonly kind: Kind;
  /** What the shape of the line decides. */
  readonly shape: string | undefined;
  readonly text: string;
  /** The lines around it that belong to it. */
  readonly near: readonly string[];
  readonly file: string | undefined;
  readonly step: string | undefined;
  readonly summary: string;
};

/** The class of a failure. */
export function reasonFor({ kind, shape, text, near, file, step, summary }: Evidence): string {
  if (shape !== undefined) return shape;
  const own = meaningOf(text);
  if (kind === "diagnostic") return codeReason(own, text, file);
  if (kind === "exception") return exceptionReason(own, text, near);
  if (configurationFile.test(file ?? "") && vagueInConfiguration.has(own ?? "")) return "configuration";
  return (
    own ??
    near.map(meaningOf).find((meaning) => meaning !== undefined) ??
    ofExit(summary) ??
    (step !== "test" && sourceFile.test(file ?? "") && /^(?:\S+:\d+.*: )?error\b/i.test(text)
      ? "compile error"
      : undefined) ??
    (exceptionName.test(text) ? "crash" : ofStep(step))
  );
}

const exceptionName = /^(?:[\w$]+\.){0,12}[A-Z]\w*(?:Error|Exception)\b: /;

function codeReason(own: string | undefined, text: string, file = ""): string {
  if (configurationFile.test(file)) return own === undefined || vagueInConfiguration.has(own) ? "configuration" : own;
  if (databaseFile.test(file)) return own === undefined || own === "type error" ? "other" : own;
  if (own !== undefined && ofCode.has(own)) return own;
  return /\berror: Source file found twice|\btemplate: /.test(text) ? "configuration" : "compile error";
}

function exceptionReason(own: string | undefined, text: string, near: readonly string[]): string {
  if (parserName.test(text)) return sourceFile.test(fileIn(text) ?? "") ? "compile error" : "configuration";
  const meant = own ?? near.map(meaningOf).find((meaning) => meaning !== undefined && !ofExceptions.has(meaning));
  if (meant === undefined) return "crash";
  // Tools that are programs themselves report what they check as exceptions: `error: TS2345 …`.
  const isReport = /^error\b|syntax ?error/i.test(text);
  return ofExceptions.has(meant) && !isReport ? "crash" : meant;
}

/** What a shell and its signals mean by the status with which a command exits. */
const exits: ReadonlyMap<string, string> = new Map([
  ["124", "timeout"],
  ["126", "permission"],
  ["127", "command not found"],
  ["130", "cancelled"],
  ["134", "crash"],
  ["137", "out of memory"],
  ["139", "crash"],
  ["143", "cancelled"],
]);

function ofExit(summary: string): string | undefined {
  const status = /\bexit (?:status|code) (\d{3})\b/.exec(summary)?.[1];
  return status === undefined ? undefined : exits.get(status);
}

function ofStep(step: string | undefined): string {
  return step === "test" || step === "verify" ? "test failed" : "other";
}
