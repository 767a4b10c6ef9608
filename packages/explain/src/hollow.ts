/** Lines that say that something failed, and not why. */
const hollow: readonly RegExp[] = [
  /\bexit(?:ed|s)?(?: with)?(?: a)?(?: non-?zero)?(?: (?:exit )?(?:status|code|with|value))?:? ?-?\d{1,3}\b[^:]{0,60}$/i,
  /non-?(?:zero|0) (?:exit )?(?:code|status|return)/i,
  /(?:process|command|task|script|step|job|subprocess|container|program)\b.{0,120}(?:did not complete successfully|exited with|errored during run|(?:failed|terminated|completed|finished) with (?:exit|status|error|code))/i,
  /returned (?:a )?(?:error|non-zero) (?:code|exit)|ended with (?:exit )?code/i,
  /\bELIFECYCLE\b|^(?:code|errno|syscall|path|command|cwd|signal|workspace|location) \S|^command (?:failed|sh -c)|^Lifecycle script|^Exit status \d/,
  /^A complete log of this run|^For a full report|^See (?:also|above|log)|^Command failed\.?$/i,
  /^g?make(?:\[\d+\])?: (?:\*\*\* \[|Target .{1,80} not remade|Leaving|Entering)/,
  /^\w+ aborted!$|^ninja: build stopped|^FAILED: \S+ ?$|^collect2: error: ld returned|^clang(?:\+\+)?: error: linker command failed/,
  /^(?:error: )?could not compile `|^error: aborting due to|^error: build failed|^error: test failed, to rerun|^Some errors have detailed/,
  /^(?:BUILD|COMPILATION|Build|FAILURE: Build|Compilation)\b ?(?:FAILED|FAILURE|failed|error)[^:]{0,60}$/,
  /^x Build failed|^error during build:?$|^build error$|^Failed to compile\.?$|^webpack .{0,60}compiled with|^error occurred$/i,
  /^Task :\S+ FAILED|^There were failing tests|^Compilation error\. See log|^The following tests FAILED|^Errors while running|^Execution failed for task|^\* What went wrong|^\* Try:|^\* Exception is|^A failure occurred while executing/,
  /^There (?:was|were) (?:\d+|an) (?:failure|error)|^FAILURES!|^FAILED \((?:errors|failures)|^FAIL$|^FAILED$|^ERRORS$|^failures:$|^Failures:$|^errors:$/,
  /^(?:[✖✗×x] )?[1-9]\d* (?:problems?|errors?|failures?|failed|failing|issues?|warnings?)\b[^:]{0,80}$|^(?:Found|found) \d+ |^\d+ error\(s\)/,
  /\b\d+ (?:tests?|examples?|specs?|passing|passed|assertions?)\b.{0,60}\b[1-9]\d* (?:failed|failing|failures?|errors?)/,
  /^(?:Tests?|Test Suites|Test Files|Snapshots|Suites|Test run|Tests run)\b:? .{0,60}(?:failed|Failures|Failed)/,
  /^test result: FAILED|^=+ .{0,80}(?:failed|error).{0,60} =+$|^\d+% tests passed, /,
  /deployment\(s\) failed|resource\(s\) failed|terminal phase: Failed|executing lifecycle|copying files: running \[|^running \[/,
  /^(?:ERROR: )?failed to (?:build|solve|execute|run|publish)(?: \S+)?: (?:exit status|process|failed to (?:solve: )?process)|^error building image: error building stage|^error building "/i,
  /docker build failure|Docker build ran into internal error|^Sorry your project|^Failure: \(ID|(?:jib|maven|gradle) build failed/,
  /Process completed with exit|Exiting with failure status|due to (?:the )?(?:\d+ )?previous errors?|errors? occurred[!.:]?$|^\d+ error\(s\) occurred/,
  /failed: (?:\w+ )?exit status \d+|failed\. Error: (?:container \S+ terminated with exit code|could not stabilize|running \[)|terminated with exit code|^Command finished with non-0/,
  /responded with a non-zero exit status|^assumes that this means|went wrong\.$|^should be in the log/,
  /^Failed to execute goal .{0,200}(?:Compilation failure|There are test failures|Command execution failed)|^(?:Re-run|To see the full stack|For more information|After correcting|\[Help \d)/,
  /^Your requirements could not be resolved|^(?:please )?(?:retry|try again)[.!]?$|^If this keeps happening|please open an issue|^unexpected error$|^Unexpected error running/i,
  /^(?:an )?(?:unknown |internal )?errors?[.!:]?$|^failed[.!:]?$|^Job failed|^Error: Process|^error Command failed|^Aborting\b|^ABORT/i,
  /^-- Configuring incomplete|^subprocess-exited-with-error|^\[end of output\]|^note: This (?:error originates|is an issue)|metadata-generation-failed|^Encountered error while/,
  /^(?:fatal: \[\S+\]: )?FAILED! => \{"changed": \w+\}$|^PLAY RECAP|^fatal: Could not read from remote repository|^error: failed to push some refs|^fatal: The remote end hung up|^(?:error: could|Could) not apply [0-9a-f]{7}|^The build could not read|^(?:\[ERROR\] )?Some problems were encountered|Some Enforcer rules have failed|^recipe for target|^Stop\.$|^Cleaning up|^\w+ \S{1,80} was cancell?ed$/,
  /^Compiling .{0,60}\.\.\.$|^Some errors were emitted while|^(?:Command )?terminated$|^exit code: \d+|^stopping? (?:after|on)|^Failed at the \S+ \S+ script|^Test(?:s)? failed[.!]?$/i,
  /\bfailed with \d+ errors?\b|^(?:Error: )?Tests? fail(?:ures?|ed)\.?$|\b[Ss]ome tests failed|^Execution halted|^=+> Compiling \S+ failed$|^g?make(?:\[\d+\])?: \*\*\* \[.{1,200}\] \S+ \d+$/,
  /^\[?(?:[✖✗×] )?(?:task|target|recipe|job|step|stage|run|build|deploy|check|lint|test)s?\b[^:]{0,40}:? ?failed\.?$|^(?:build|deploy|test|sync|task|step|status|result)(?: \S{1,60})?: (?:failed|FAILED)$/i,
  /^(?:\[Help \d\] )?https?:\/\/\S+$|^cause: exit (?:status|code) \d+|^rsync error: /,
];

export function isHollow(bare: string): boolean {
  return hollow.some((pattern) => pattern.test(bare));
}

/** Lines that report success or mere information although they have a word of failure. */
const benign: readonly RegExp[] = [
  /^(?:[✓✔√]|ok\b|PASS\b|--- PASS|=== |\.\.\. ok|test .{1,200} \.\.\. ok|part\d+: OK)|\.\.\. ok$|: OK$|\bPASSED\b/,
  /\b(?:no|0|zero|without(?: an?)?|any) (?:\w+ )?(?:errors?|failures?|failed|warnings?|problems|issues|conflicts|vulnerabilities)\b(?!.*[1-9]\d* (?:errors?|failed|failures?)\b)/i,
  /\b(?:errors?|failures?|failed)(?: \w+){0,3}[:=] ?(?:0\b|(?:off|none|no|false|null)(?:$|[,;.)])|\[\]|"")/i,
  /^(?:warning|warn|note|notice|info|debug|hint|deprecat\w+|advice)\b\W|\b(?:warning|note|notice|info|remark|NOTICE|HINT)(?:\[[\w-]+\])?: |DeprecationWarning|^\(node:\d+\)/i,
  /^[\w@.+/\\-]+\/?$|^\[\d+(?:\/\d+| of \d+)\] |^ *\d{1,5} [|│]|^[|│] |^ *> *\d{1,5} [|│]|^[|^~ ─━-]+$|^(?:Required by|Searched in the following|Require stack|stack traceback|Stack trace|Backtrace)\b|^\[C\]: |^\S+: In (?:member )?function |^In file included from |^\S+: At (?:top|global) |^.{1,80} \| +\d+ [+-]*$/,
  /^(?:[$+%#] |> |: && |\/?(?:\S*\/)?(?:cc|gcc|g\+\+|c\+\+|clang|clang\+\+|rustc|javac|ar|ld|install|mkdir|cp|rm|echo|grep|node|npx|python3?) -)/,
  /^(?!(?:\S+ )?(?:error|fatal)\b|.*timed out).*(?:is already the newest|set to manually installed|already installed|will be retried|retrying|retry \d|try \d+ of|attempt \d|will retry|trying again|waiting for|falling back|ignor(?:ed|ing)|skipp(?:ed|ing)|recovered|expected in this test|\(expected\)|as expected)/i,
  /^(?:Hit|Get|Ign|Inst|Conf|Unpacking|Setting up|Selecting|Preparing|Downloading|Downloaded|Collecting|Compiling|Building|Installing|Fetching|Copying|creating|created|adding|applying|Step \d+)\b(?!.*(?:unable|no such|invalid|missing|unknown|fail|refused|denied|dial|error:|timeout|timed out|cannot|not found))/i,
  /^(?:DETAIL|CONTEXT|STATEMENT|QUERY|LOCATION): |^(?:COPY|RUN|FROM|CMD|ENV|ARG|WORKDIR|ENTRYPOINT)\b/,
  /^(?:errno|code|syscall|path|address|port|dest|spawnargs|requireStack|generatedMessage|actual|expected|operator|status|killed): [\w'"[-]\S{0,200},?$/,
  /^\[[\w./-]{1,80} (?:\(root-commit\) )?[0-9a-f]{7,40}\] |^[0-9a-f]{7,40} \S+|^[MADRCU?]{1,2} \S+$|^(?:configmap|service|deployment|pod|secret|namespace)[\w.]*\/\S+ (?:created|configured|unchanged|deleted)/,
  /^(?:env|errors? reporting|log_level|artifacts of|templates|level|errors? rate|epoch|frame)\b.{0,40}[:=]|\berrors? (?:rate|budget|allowed|page|level|handling|handler|reporting|messages?|codes?|digest)\b(?!.*(?:failed|cannot|refused))/i,
];

/** Tests that passed, and titles of tests, whatever their names say. */
export function isPassed(bare: string): boolean {
  return /^(?:[✓✔√]|ok \d+|ok\b|--- PASS|PASS\b|XFAIL\b|XPASS\b|SKIP(?:PED)?\b|# Subtest: )/.test(bare);
}

export function isBenign(bare: string): boolean {
  return benign.some((pattern) => pattern.test(bare));
}

/** Verdicts of success: what stood before was recovered from. */
const success =
  /^(?:\[?(?:BUILD SUCCESS|BUILD SUCCESSFUL|Build succeeded)|Deployments stabilized|Successfully (?:built|tagged|installed|deployed)|test result: ok|OK \(|PASS$|ok[ \t]{2,}|Done in |✓ built in|All checks passed|all tests passed|Finished .{0,40}successfully|done[.!]?$|Compiled successfully|Apply complete)|\b(?:compiled|completed|finished|deployed|succeeded) successfully\b|^\d+ passing|^=+ \d+ passed(?!.* (?:failed|error))[^=]{0,80} =+$|^(?:Tests?|Test Files|Test Suites)\b:? +(?!.*failed).*\d+ passed|\bunreachable=0 +failed=0\b|^built \S+$|\b\d+ passed\b.{0,40}\b0 failed|^(?!.*\b(?:fail\w*|giv\w+|gave|could|error|unable)\b).*\bafter (?:\d+ )?(?:retr(?:y|ies)|attempts?|tries)\b|^(?:all|build) (?:ok|good)\b|^finished[.!]?$|^DONE \d[\d.]*s$|\bis (?:ok|okay|successful|valid)\.?$|^# fail 0$/i;

const noneFailed = /\b(?:0|no) (?:tests? )?(?:errors?|failures?|failed|failing|issues|problems)\b/i;
const someFailed = /\b[1-9]\d* (?:\w+ )?(?:errors?|fail\w*)\b/i;

export function isSuccess(bare: string): boolean {
  return (
    success.test(bare) ||
    /^(?:\+ )?(?:exit|true|:)(?: 0)?$|\bexit(?:ed|s)?(?: with)?(?: code| status)?:? 0\b/i.test(bare) ||
    (noneFailed.test(bare) && !someFailed.test(bare) && /\d|found/i.test(bare))
  );
}

const wentOn =
  /\b(?:healthy|ready|listening|connected|saved|created|configured|unchanged|switched to|recovered|up[ -]to[ -]date|installed|uploaded|published|pushed|deployed|started|running|serving|restored|synced|fetched|passed|done|finished|reached|completed?|succeeded|success(?:ful(?:ly)?)?|ok)\b/i;
const doubtful =
  /\b(?:not?|cannot|\w+n['’]t|un\w+|fail\w*|errors?|please|if|when|should|must|make sure|to be|before|was|were|waiting|0 of|closed|exit\w*|stopp\w+|halted|aborted)\b/i;

/** What a database answers to a statement that it carried out. */
const statement = /^(?:CREATE|ALTER|INSERT|COMMIT|UPDATE|DELETE|SELECT|DROP|COPY|GRANT)(?: [A-Z\d]+)*$/;

/** Whether a last line reports normal work: what failed before was dealt with. */
export function tellsOfWork({ bare, level }: { readonly bare: string; readonly level: string | undefined }): boolean {
  const said = bare.replace(/'[^']{0,200}'|"[^"]{0,200}"|`[^`]{0,200}`|\S+\/\S+/g, "x");
  return (
    !doubtful.test(said) &&
    !/\?$|^(?:\(|to|for|is|did|you|see|use|run|try|also|identify|check|consider)\b|(?:\S+ ){12}/i.test(said) &&
    (level === "info" || wentOn.test(said) || statement.test(bare))
  );
}
