import type { Line } from "./lines.ts";
import { placesIn } from "./places.ts";

export type Shape = {
  readonly kind: "diagnostic" | "exception" | "error";
  readonly score: number;
  readonly reason?: string;
};

type ShapeRule = Shape & {
  readonly pattern: RegExp;
  /** Has to match one of the lines below it, so many of them. */
  readonly below?: { readonly pattern: RegExp; readonly lines: number };
  /** Has to match the line above it. */
  readonly above?: RegExp;
};

const place = String.raw`(?:[A-Za-z]:)?[^\s:()"'|<>]{1,300}`;
const at = String.raw`(?::\d+\.\d+(?:-[\d.]+)?|:\d+(?::\d+)?(?:[-–]\d+(?::\d+)?)?|\(\d+(?:,\d+)*\)|:\[\d+,\d+\])`;

/** What compilers, linters and others print about one place: the first that matches counts. */
const rules: readonly ShapeRule[] = [
  // Not a cause of anything.
  {
    kind: "error",
    score: 0,
    pattern: new RegExp(
      String.raw`^${place}${at}:? *-? ?(?:warning|warn|note|info|notice|hint|remark|NOTICE|WARNING|INFO|Warnung|Anmerkung|avertissement|attention|advertencia|nota|aviso)\b`,
    ),
  },
  { kind: "error", score: 0, pattern: /^\d+:\d+ +(?:warning|warn|info)\b/ },
  // Lines of code or prose that a search found.
  {
    kind: "error",
    score: 0,
    pattern: new RegExp(
      String.raw`^${place}:\d+: ?(?:.*[=(].*[;{}](?: *\/[/*].*)?$|return\b|\/\/)|^${place}\.(?:md|txt|rst|adoc):\d+: `,
    ),
  },
  { kind: "error", score: 0, pattern: /^(?:warning|note|help|hint|info)(?:\[\w+\])?: |^w: |^\[\w+\] (?:Warning|Note)/ },
  // Linters, by their codes.
  {
    kind: "diagnostic",
    score: 92,
    reason: "lint",
    pattern: new RegExp(String.raw`^${place}:\d+:\d+:? \[?(?:[A-Z]{1,4}\d{2,5}|[CWERF])\b[\]:]?`),
  },
  { kind: "diagnostic", score: 92, reason: "lint", pattern: /^\d+:\d+ +(?:error|✖|×) +\S/ },
  { kind: "diagnostic", score: 92, reason: "lint", pattern: /^\^-+\^? SC\d{4} \(error\)/ },
  { kind: "diagnostic", score: 88, reason: "lint", pattern: /^\^-+\^? SC\d{4} \(/ },
  { kind: "diagnostic", score: 92, reason: "lint", pattern: new RegExp(String.raw`^${place}:\d+:? [A-Z]{2}\d{3,4} `) },
  {
    kind: "diagnostic",
    score: 92,
    reason: "lint",
    pattern: /^(?:×|✖|✘) \S/,
    above: new RegExp(String.raw`^${place}:\d+:\d+ (?:lint|assist|suppressions)\/`),
  },
  {
    kind: "diagnostic",
    score: 90,
    reason: "lint",
    pattern: /^[A-Z]{1,4}\d{3,4} (?:\[\*\] )?\S/,
    below: { pattern: /^-->/, lines: 2 },
  },
  {
    kind: "diagnostic",
    score: 70,
    reason: "lint",
    pattern:
      /^(?:would reformat|\[(?:warn|error)\]) \S+$|^\S+ (?:is not formatted|needs formatting)|^Diff in \S+|^Formatter would have printed|Code style issues (?:found|were)|^File content differs from formatting/,
  },
  {
    kind: "diagnostic",
    score: 92,
    reason: "lint",
    pattern: new RegExp(String.raw`^${place}:\d+(?::\d+)? (?:error |warning )?[A-Z]{2,5}\d{2,4}\b`),
  },
  { kind: "diagnostic", score: 88, reason: "lint", pattern: /^[✖✗×] +\S.{1,300} \[[a-z]+(?:-[a-z]+)+\]$/ },
  // Compilers.
  {
    kind: "diagnostic",
    score: 92,
    reason: "configuration",
    pattern:
      /^\w*(?:SyntaxError|Error)\b: .{0,300}(?:is not valid JSON|in JSON at position|Unexpected token .{1,12}, (?:\.{3})?["'])/,
  },
  {
    kind: "diagnostic",
    score: 95,
    pattern: new RegExp(
      String.raw`^(?:\[error\] |e: (?:file:\/\/)?)?${place}${at}:? *-? ?(?:[A-Za-z]{1,20} ){0,2}(?:(?:error|fatal)\b|(?:Error|ERROR|Fehler|[Ee]rreur|errore) ?:)`,
    ),
  },
  // The level stands before the place.
  {
    kind: "diagnostic",
    score: 80,
    pattern: new RegExp(
      String.raw`^\W{0,2}(?:error|fatal|Error|ERROR)\b[^\w/.~]{1,6}(?:in |at |file )?${place}${at}\W{1,4}\S`,
    ),
  },
  // A table of rows below the name of a file.
  { kind: "diagnostic", score: 90, pattern: /^\d+ {2,}\S.{8}/, above: /^-{3,} -{3,}/ },
  {
    kind: "diagnostic",
    score: 90,
    pattern: /^(?:Error|error|Fatal): \S/,
    above: /^\d* *\| *[\^1~]+$/,
  },
  { kind: "diagnostic", score: 95, pattern: new RegExp(String.raw`^e: (?:file:\/\/)?${place}${at}`) },
  { kind: "diagnostic", score: 94, pattern: new RegExp(String.raw`^${place}:\[\d+,\d+\] \S`) },
  {
    kind: "diagnostic",
    score: 94,
    pattern: /^(?:error|Error|ERROR|fatal)(?:\[\w+\])?: \S/,
    below: { pattern: /^(?:-->|╭─+\[|┌─+|,-\[|❯ |on \S+ line \d+)/, lines: 4 },
  },
  { kind: "diagnostic", score: 93, pattern: /^(?:✘|✖|×|X) ?\[ERROR\] \S/ },
  { kind: "diagnostic", score: 93, pattern: /^-- (?:\[E\d+\] )?.{0,80}Error: \S+:\d+:\d+/ },
  {
    kind: "diagnostic",
    score: 91,
    pattern: new RegExp(
      String.raw`^(?:\w{1,20}: )?${place}:\d+: (?:syntax error|undefined|undeclared|unterminated|parse error|missing separator|unexpected|Neither|Unknown|invalid|error)`,
      "i",
    ),
  },
  {
    kind: "diagnostic",
    score: 91,
    reason: "compile error",
    pattern:
      /^(?:\/\S+\/ld: )?\S+: ?(?:\(\.\w+\+0x[0-9a-f]+\): )?(?:in function .{1,200}: )?(?:undefined reference|multiple definition|cannot find -l)/,
  },
  {
    kind: "diagnostic",
    score: 91,
    reason: "compile error",
    pattern:
      /^(?:PHP )?(?:Parse|Fatal) error: (?! *Uncaught).{1,300} in \S+ (?:on line |:)\d+|^(?!#|Use of uninit).{1,200} at \S+ line \d+(?:, near|\.$)/,
  },
  {
    kind: "diagnostic",
    score: 91,
    reason: "compile error",
    pattern: /^\w*(?:SyntaxError|IndentationError|TabError)\b: /,
  },
  {
    kind: "diagnostic",
    score: 91,
    reason: "compile error",
    pattern: /^Module parse failed|^Module build failed|^\[!\] .{0,40}RollupError|^SyntaxError\b/,
  },
  {
    kind: "diagnostic",
    score: 90,
    reason: "not found",
    pattern: /^Module not found: |^Could not resolve "|^\[vite\].{0,60}failed to resolve/,
  },
  {
    kind: "diagnostic",
    score: 86,
    pattern: /^(?:\w[\w ]{0,20} )?(?:[Cc]ould not find|By not providing)\b/,
    above: /^CMake Error at |^$/,
    below: { pattern: /\.cmake$|with any of/, lines: 4 },
  },
  { kind: "diagnostic", score: 84, pattern: /^CMake Error at \S+:\d+/ },
  // Linters that name their rule behind the message.
  {
    kind: "diagnostic",
    score: 92,
    reason: "lint",
    pattern: new RegExp(
      String.raw`^${place}:\d+(?::\d+)?:? .{1,300}(?:\((?:[a-z][\w-]{2,40}(?:[:/][\w-]+)?)\)|\[[A-Z][a-z]+[A-Z]\w{2,40}\])$`,
    ),
  },
  { kind: "diagnostic", score: 82, pattern: new RegExp(String.raw`^(?:[a-z]{1,20}: )?${place}\.\w{1,8}:\d+:\d+: ?\S`) },
  { kind: "error", score: 66, pattern: new RegExp(String.raw`^${place}\.\w{1,8}: (?:line )?\d+: (?!\d+ )\S`) },
  { kind: "error", score: 66, pattern: new RegExp(String.raw`^\w{1,20}: ${place}\.\w{1,8}:\d+: \S`) },
  {
    kind: "error",
    score: 72,
    reason: "other",
    pattern: /^(?:CONFLICT|KONFLIKT|CONFLIT|CONFLICTO|コンフリクト|競合) ?\(/,
  },
  // Programs that die.
  { kind: "exception", score: 81, pattern: /^\S+\.\w{1,4}:\d+:in [`'].{1,200}: .{1,300}\([A-Z][\w:]*\)$/ },
  {
    kind: "exception",
    score: 84,
    reason: "crash",
    pattern:
      /^==\d+== ?ERROR: \w+Sanitizer|^(?:\w+Sanitizer: .{0,40})?(?:runtime error|DEADLYSIGNAL)|^WARNING: ThreadSanitizer|^fatal error: (?:all goroutines|concurrent map|unexpected signal)/,
  },
  {
    kind: "exception",
    score: 83,
    reason: "crash",
    pattern:
      /^panic: \S|^thread '[^']{1,200}'(?: \(\d+\))? panicked at|^PANIC\b|^(?:\S+: )?(?:line \d+: +\d+ )?(?:Segmentation fault|Bus error|Illegal instruction|Floating point exception|Aborted)\b(?! \(core dumped\) [a-z])|^terminate called after|^\S+: \S+:\d+: .{1,200}: Assertion .{1,200} failed|^Assertion failed: /,
  },
  {
    kind: "exception",
    score: 83,
    reason: "out of memory",
    pattern:
      /^(?:\S+: )?(?:line \d+: +\d+ )?Killed\b|^FATAL ERROR: .{0,120}(?:heap|memory)|^Out of memory|oom-kill|^Memory cgroup out of memory/,
  },
  { kind: "error", score: 60, reason: "timeout", pattern: /^timeout: (?:sending signal|the monitored command)/ },
];

export function shapeOf(lines: readonly Line[], index: number): Shape | undefined {
  const bare = lines[index]?.bare ?? "";
  const rule = rules.find(
    ({ pattern, below, above }) =>
      pattern.test(bare) &&
      (below === undefined ||
        lines.slice(index + 1, index + 1 + below.lines).some((line) => below.pattern.test(line.bare))) &&
      (above === undefined || above.test(lineAbove(lines, index))),
  );
  if (rule === undefined || rule.score === 0) return rule;
  const isForeign =
    rule.kind === "diagnostic" && placesIn(bare).some(({ file }) => /node_modules\/|site-packages\//.test(file));
  return isForeign ? { kind: rule.kind, score: rule.score - 6 } : rule;
}

/** The nearest line above that is not empty. */
function lineAbove(lines: readonly Line[], index: number): string {
  return lines.slice(Math.max(0, index - 3), index).findLast(({ bare }) => bare !== "")?.bare ?? "";
}
