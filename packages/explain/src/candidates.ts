import type { Candidate, Kind } from "./candidate.ts";
import { isBenign, isHollow, isPassed, isSuccess } from "./hollow.ts";
import type { Line } from "./lines.ts";
import { placesIn, subjectOf } from "./places.ts";
import { meaningOf } from "./reasons.ts";
import { shapeOf } from "./shapes.ts";
import { isCausedBy, isExceptionHead, isFrame } from "./stacks.ts";
import { isFailedTestVerdict, isGoTestLog, testFailureOf } from "./tests.ts";

export function candidatesOf(lines: readonly Line[]): readonly Candidate[] {
  const isTestRun = lines.some(({ bare }) => isFailedTestVerdict(bare));
  return lines.flatMap((_, index) => candidateAt(lines, index, isTestRun) ?? []);
}

function candidateAt(lines: readonly Line[], index: number, isTestRun: boolean): Candidate | undefined {
  const line = lines[index];
  if (line === undefined || line.bare === "" || line.level === "info") return undefined;
  const { bare } = line;
  if (isSuccess(bare) || isPassed(bare)) return undefined;
  const candidate = (kind: Kind, score: number, reason?: string) => ({ index, kind, score, reason });
  if (isTestRun) {
    const score = testFailureOf(lines, index);
    if (score !== undefined) return candidate("test", score, "test failed");
  }
  if (isGoTestLog(bare)) return undefined;
  if (line.level === "warning" && !/^Code style issues|^Formatter would/.test(bare)) return undefined;
  const shape = shapeOf(lines, index);
  if (shape !== undefined) return candidate(shape.kind, shape.score, shape.reason);
  if (isFrame(line)) return undefined;
  if (isHollow(bare)) return candidate("hollow", 5);
  const stack = stackScore(lines, index);
  if (stack !== undefined) return candidate("exception", stack);
  if (isBenign(bare) || isIgnored(lines, index) || isListedWarning(lines, index)) return undefined;
  return messageCandidate(line, candidate) ?? (isReasonOfTask(lines, index) ? candidate("phrase", 20) : undefined);
}

/** Gradle prints the reason below the task, whatever its words. */
function isReasonOfTask(lines: readonly Line[], index: number): boolean {
  return /^Execution failed for task/.test(lines[index - 1]?.bare ?? "");
}

/** Ansible goes on after failures of tasks that may fail. Messages of commits describe the past. */
function isIgnored(lines: readonly Line[], index: number): boolean {
  if (lines[index + 1]?.text === "...ignoring") return true;
  return lines.slice(Math.max(0, index - 8), index).some(({ bare }) => /^commit [0-9a-f]{7,40}\b/.test(bare));
}

/** So far above a row its list's heading is looked for: without a bound, a long list would take quadratic time. */
const maxRows = 100;

/** A row of a list that a heading such as `2 warnings found` begins. */
function isListedWarning(lines: readonly Line[], index: number): boolean {
  const isRow = ({ text }: Line) => /^\s*[-*•] /.test(text);
  if (lines[index] === undefined || !isRow(lines[index])) return false;
  const heading = lines.slice(Math.max(0, index - maxRows), index).findLast((line) => !isRow(line));
  return /^(?:\d+ )?warnings?\b(?: found| generated|:|$)/i.test(heading?.bare ?? "");
}

/** The first line of an exception, whose frames follow (or came before, in Python). */
function stackScore(lines: readonly Line[], index: number): number | undefined {
  const line = lines[index];
  if (line === undefined) return undefined;
  // Rake prints a message without the class of its exception.
  const isAborted = / aborted!$/.test(lines[index - 1]?.bare ?? "");
  if (!isAborted && !isExceptionHead(line)) return undefined;
  const near = lines.slice(index + 1, index + 14);
  const stop = near.findIndex((next) => next.bare !== "" && next.indent <= line.indent && isExceptionHead(next));
  const own = stop < 0 ? near : near.slice(0, stop);
  const isAbove = lines.slice(Math.max(0, index - 8), index).some(({ bare }) => /^File "|^Traceback /.test(bare));
  if (!own.some(isFrame) && !isAbove) return undefined;
  return isCausedBy(line) ? 88 : 86;
}

const marked =
  /^(?:[\w@./:+-]{1,60}(?:\[\d+\])?: )?(?:\w{1,20} )?(?:fatal|error|ERROR|Error|FATAL|Fatal|E|FAIL|panic|PANIC|emerg|CRITICAL|Failure)\b(?: \([\w ]{1,40}\)|\[\w+\]| \w{1,12})?:(?: |$)|^(?:Error|ERROR|FATAL|Fatal|error(?= [A-Z])|fatal)\b |^(?:✘|✖|×|❌|\*\*) /;
const inner =
  /\b(?:error|fatal|failed|failure|exception)\b ?(?:\([\w ]{1,40}\)|\[\w+\])?: \S|\w+(?:Error|Exception)\b/i;
const phrase =
  /\b(?:cannot|can['’]t|can ?not|could(?: not|n['’]t)|unable to|fail(?:ed|s|ure)?|not found|no such|denied|refused|rejected|forbidden|invalid|unexpected|missing|undefined|unknown|unsupported|unresolved|undeclared|illegal|malformed|mismatch|conflict|doesn['’]t|does not|did not|is not|isn['’]t|not (?:allowed|permitted|supported|a|an|set|defined|available|installed)|neither|must (?:be|not|have)|requires?|required|timed? ?out|timeout|deadline|exceeded|expired|unauthorized|unreachable|killed|aborted|crash\w*|segmentation|overflow|violat\w+|already (?:exists|in use|allocated)|no space|no route|no (?:rule|match\w*|module|package|provider|space|nodes?)|not enough|insufficient|out of|exhausted|corrupt\w*|broken|bad|syntax|error)\b/i;

/** What they mean is the root of whatever else is printed. */
const decisive: ReadonlyMap<string, number> = new Map([
  ["disk full", 42],
  ["out of memory", 42],
  ["port in use", 24],
]);

/** A heading says less than what follows it, and a message before another try may not be the last word. */
function doubt(bare: string): number {
  return (bare.endsWith(":") ? 3 : 0) + (/\b(?:retrying|will retry|trying again)\b/i.test(bare) ? 20 : 0);
}

function messageCandidate(line: Line, candidate: (kind: Kind, score: number) => Candidate): Candidate | undefined {
  const { bare, level } = line;
  const meaning = meaningOf(bare);
  const isMeant = meaning !== undefined;
  const place = placesIn(bare).length > 0 && /^\S+[:(]/.test(bare);
  const bonus =
    (meaning === undefined ? 0 : (decisive.get(meaning) ?? 8)) +
    (place ? 6 : 0) -
    Math.min(line.indent, 4) -
    doubt(bare);
  if (marked.test(bare)) return candidate("error", 54 + bonus);
  if (level === "error")
    return isMeant || phrase.test(bare) ? candidate("error", 48 + bonus) : candidate("phrase", 16 + bonus);
  if (inner.test(bare) && !/^["'`\w]+(?:Error|Exception)\w*["'`]?$/.test(bare)) return candidate("error", 42 + bonus);
  if (phrase.test(bare) && (isMeant || place || subjectOf(bare) !== undefined || /^\S{1,60}: |^[A-Z]/.test(bare)))
    return candidate("phrase", 24 + bonus);
  return isMeant ? candidate("phrase", 20 + bonus) : undefined;
}
