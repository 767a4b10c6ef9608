import type { Candidate } from "./candidate.ts";
import { candidatesOf } from "./candidates.ts";
import { isSuccess, tellsOfWork } from "./hollow.ts";
import type { Line } from "./lines.ts";

/** What a program prints about itself counts more near the end: earlier failures were recovered from. */
const recent = 28;

/** The line that says best why a step failed. `hasFailed`: the step is known to have failed. */
export function chosen(lines: readonly Line[], hasFailed: boolean): Candidate | undefined {
  const candidates = candidatesOf(lines);
  if (!hasFailed && !showsFailure(lines, candidates)) return undefined;
  const cleanup = lines.findLastIndex(({ bare }) => /^(?:Cleaning up|Post job cleanup)\b/.test(bare));
  const found = candidates.filter(({ kind }) => kind !== "hollow");
  const before = cleanup < 0 ? found : found.filter(({ index }) => index < cleanup);
  const telling = before.length === 0 ? found : before;
  const lastGroup = startOfLastGroup(lines, telling);
  const scored = telling.map((candidate) => ({
    candidate,
    score: candidate.score + (isMessage(candidate) && candidate.index >= lastGroup ? recent : 0),
  }));
  const best = scored.reduce((max, { score }) => Math.max(max, score), 0);
  const top = scored.filter(({ score }) => score === best).map(({ candidate }) => candidate);
  const winner = isRuntime(top[0]) ? (top.findLast(({ kind }) => kind === "exception") ?? top[0]) : lastTry(lines, top);
  if (winner === undefined) return candidates.find(({ kind }) => kind === "hollow");
  return firstOfSame(lines, candidates, winner);
}

function isMessage({ kind }: Candidate): boolean {
  return kind === "error" || kind === "phrase";
}

/** The last exception ends a program; the first error of a compiler leads to the others. */
function isRuntime(candidate: Candidate | undefined): boolean {
  return candidate?.kind === "exception";
}

/** The first of equal candidates; of messages that one program prints at each try, the last. */
function lastTry(lines: readonly Line[], top: readonly Candidate[]): Candidate | undefined {
  const [first] = top;
  if (first === undefined || !isMessage(first)) return first;
  const start = ({ index }: Candidate) => (lines[index]?.bare ?? "").slice(0, 24).replace(/\d+/g, "#");
  const tries = top.filter((one) => start(one) === start(first));
  const last = tries.at(-1) ?? first;
  return last.index - first.index >= tries.length ? last : first;
}

/** A line that is printed again, as builders repeat the output of a failed step, is quoted where it stood first. */
function firstOfSame(lines: readonly Line[], candidates: readonly Candidate[], winner: Candidate): Candidate {
  const bare = lines[winner.index]?.bare;
  return candidates.find((one) => one.kind === winner.kind && lines[one.index]?.bare === bare) ?? winner;
}

/** Messages that follow one another belong together. A line about something else parts them. */
function startOfLastGroup(lines: readonly Line[], telling: readonly Candidate[]): number {
  const indexes = new Set(telling.map(({ index }) => index));
  let start = telling.at(-1)?.index ?? 0;
  let others = 0;
  for (let index = start - 1; index >= 0 && others < 2; index -= 1) {
    const line = lines[index];
    if (indexes.has(index)) {
      start = index;
      others = 0;
    } else if (line !== undefined && isOther(line)) others += 1;
  }
  return start;
}

/** A line that belongs to no message. */
function isOther({ bare, indent, level, text }: Line): boolean {
  return bare !== "" && indent === 0 && level !== "error" && !text.startsWith("\t");
}

/** How many lines about something else may follow the last message of a command that failed, by how sure it is. */
const maxAfter = { sure: 7, likely: 3, phrase: 1 };

/** Whether an output alone shows that its command failed. */
function showsFailure(lines: readonly Line[], candidates: readonly Candidate[]): boolean {
  const last = candidates.at(-1);
  if (last === undefined) return false;
  const rest = lines.slice(last.index + 1);
  const end = rest.findLast(({ bare }) => bare !== "");
  if (rest.some(({ bare }) => isSuccess(bare))) return false;
  if (last.kind !== "hollow" && end !== undefined && tellsOfWork(end)) return false;
  if (isRetried(rest)) return false;
  const best = candidates.reduce((max, { score }) => Math.max(max, score), 0);
  if (candidates.some(({ kind, score }) => kind === "hollow" || (kind !== "phrase" && score >= 80))) return true;
  const lastTelling = candidates.findLast(({ score }) => score > 0);
  if (lastTelling === undefined) return false;
  const others = lines.slice(lastTelling.index + 1).filter((line) => isOther(line) && !isContinuation(line)).length;
  return others <= (best >= 54 ? maxAfter.sure : best >= 40 ? maxAfter.likely : maxAfter.phrase);
}

/** The last failure was followed by another try, and that one by something else than a failure. */
function isRetried(rest: readonly Line[]): boolean {
  const [next, ...others] = rest.filter(({ bare }) => bare !== "");
  return next !== undefined && others.length > 0 && /\b(?:will retry|retrying|trying again)\b/i.test(next.bare);
}

/** A line of prose that goes on with a sentence. */
function isContinuation({ bare }: Line): boolean {
  return /^(?:[a-z`'"(]|If |To |When |For |Please |Is |Did |You |See |Use |Run |Try |Also|info )\S*(?: \S+){3}/.test(
    bare,
  );
}
