import type { Line } from "./lines.ts";

/** What runners of tests print when one failed. */
const verdict =
  /^(?:FAIL\b(?!ED)|FAILED(?:$| +\S*[/.:])|--- FAIL:|not ok \d+|FAILURES!|Failures?:|failures:|Failed examples:|=+ (?:FAILURES|ERRORS) =+|test result: FAILED|FAILED TESTS|The following tests FAILED|\[ {2}FAILED {2}\]|FAILED \((?:errors|failures)=|Failed!|✗|✖ failing tests|● .{1,200} › )|^(?:Tests?|Test Suites|Test Files|Spec Files|Tests run|Suites)\b:? .{0,80}(?:[1-9]\d* failed|Failures: [1-9]|Errors: [1-9]|Failed: +[1-9])|^(?:[✖✗] )?[1-9]\d* (?:failing|failed|failures?)\b|\b[1-9]\d* (?:failed|failing|failures?)\b(?:,| in |$).{0,80}$|\*{3}(?:Failed|Exception|Timeout)\b|<<< (?:FAILURE|ERROR)!|\bFAILED$|^There (?:was|were) \d+ (?:failure|error)|^# fail [1-9]|^\d+ tests?, .{0,60}[1-9]\d* failures?|\b[Ss]ome tests failed|^═+ Failed tests|^── (?:Failure|Error) \(/;
const notTests = /\b(?:compil|link|build|deployment|resource|problem|vulnerab|packages?)\w*\b/i;

export function isFailedTestVerdict(bare: string): boolean {
  return verdict.test(bare) && !notTests.test(bare) && !/^FAILED: |^Build FAILED|^Task :/.test(bare);
}

type TestRule = {
  readonly score: number;
  readonly pattern: RegExp;
  /** Has to match one of the lines above or below, so many of them. */
  readonly near?: { readonly pattern: RegExp; readonly above?: number; readonly below?: number };
};

/** The lines that say what a test expected, or what it met: the first that matches counts. */
const rules: readonly TestRule[] = [
  // pytest, and assertions of all languages.
  { score: 100, pattern: /^E {2,}\S/ },
  {
    score: 99,
    pattern:
      /^(?:\[ERROR\] +)?(?:[\w$]+[.\\:]{1,2}){0,8}(?:Assertion\w*(?:Error|Exception|Failed|Failure)?|ComparisonFailure|ExpectationFailed\w*|ExpectationNotMet\w*|ShouldaError|TestFailure)(?: \[\w+\])?: /,
  },
  {
    score: 99,
    pattern:
      /^Failed asserting that |^assertion (?:`[^`]+` )?failed|^Assertion with \S+ failed|^Assert\.\w+\(\) Failure|^(?:\S+:\d+: )?[Aa]ssertion failed/,
  },
  { score: 99, pattern: /^WARNING: DATA RACE|^# +Failed test\b/ },
  { score: 98, pattern: /^Error Trace:|^Error: +(?:Not equal|Should |Received|Expected)/ },
  { score: 98, pattern: /^(?:\S+:\d+|\S+\(\d+\)): Failure$/ },
  {
    score: 97,
    pattern:
      /^(?:Failure\/Error: |expected(?: \S+)?: \S|Expected:? \S|error: (?:expect|Expected|assert)|expect\(.{1,200}\)\.|Failure: )/,
  },
  { score: 97, pattern: /^\S/, near: { pattern: /^── (?:Failure|Error) \(/, above: 1 } },
  { score: 97, pattern: /^● .{1,300} › / },
  { score: 96, pattern: /^thread '[^']{1,200}'(?: \(\d+\))? panicked at/ },
  {
    score: 98,
    pattern: /^(?:[\w$]+\.){0,8}\w*(?:Error|Exception)\b(?: \[\w+\])?: \S/,
    near: { pattern: /^(?:Traceback|\d+\) |FAIL|ERROR: |● |✖|×|File ")|<<< (?:FAILURE|ERROR)!|FAILED$/, above: 14 },
  },
  { score: 94, pattern: /^(?:\[ERROR\] +)?\w[\w.$]{1,200}[.:]\w+:\d+ .*(?:expected|Expected|»)/ },
  { score: 93, pattern: /^panic: \S/ },
  { score: 90, pattern: /^(?:\[ERROR\] +)?\S+ .{0,60}<<< (?:FAILURE|ERROR)!/ },
  {
    score: 88,
    pattern:
      /^--- FAIL: .{1,200}\/|^not ok \d+|^\[ {2}FAILED {2}\] \S+\.\S+ \(|^\d+\) \S|^✗ \S|\*{3}(?:Failed|Exception|Timeout)\b|^(?:✖|×|✕) (?!failing|\d)\S/,
  },
  {
    score: 86,
    pattern: /^--- FAIL: |^test .{1,200} \.\.\. FAILED|^(?:FAIL|FAILED|ERROR) +\S+.{2,}|^(?:FAIL|ERROR): \S.{2,}/,
  },
];

/** How likely a line says why a test failed. */
export function testFailureOf(lines: readonly Line[], index: number): number | undefined {
  const bare = lines[index]?.bare ?? "";
  if (isGoTestLog(bare)) return isOfFailedGoTest(lines, index) ? 98 : undefined;
  const rule = rules.find(({ pattern, near }) => {
    if (!pattern.test(bare)) return false;
    if (near === undefined) return true;
    const around = lines.slice(Math.max(0, index - (near.above ?? 0)), index + 1 + (near.below ?? 0));
    return around.some((line) => near.pattern.test(line.bare));
  });
  return rule?.score;
}

/** What a test in Go logs: `limit_test.go:12: got 3, want 2`. */
const goLog = /^(?:\S+\/)?\w+_test\.go:\d+: \S/;

export function isGoTestLog(bare: string): boolean {
  return goLog.test(bare);
}

/** Its test's verdict stands above it, or below the logs of all subtests in verbose output. */
function isOfFailedGoTest(lines: readonly Line[], index: number): boolean {
  const marks = /^(?:=== (?:RUN|NAME|CONT)|--- (?:PASS|FAIL|SKIP):)/;
  const above = lines.slice(Math.max(0, index - 60), index).findLast(({ bare }) => marks.test(bare))?.bare ?? "";
  if (above.startsWith("---")) return above.startsWith("--- FAIL");
  const name = above.split(/\s+/)[2];
  const below = lines
    .slice(index + 1, index + 200)
    .find(({ bare }) => /^--- /.test(bare) && bare.split(/\s+/)[2] === name);
  return below?.bare.startsWith("--- FAIL") ?? false;
}
