import { adviceFor } from "./advice.ts";
import type { Candidate } from "./candidate.ts";
import { chosen } from "./choose.ts";
import type { Explanation, StepOutput } from "./explanation.ts";
import { isHollow } from "./hollow.ts";
import { type Line, lineOf, linesOf } from "./lines.ts";
import { locate } from "./locate.ts";
import { meaningOf, reasonFor } from "./reasons.ts";

export type { Explanation, StepOutput } from "./explanation.ts";
export { causeGroup } from "./group.ts";

/** Why a step failed, concluded from what it printed. Undefined where nothing failed. */
export function explain(step: StepOutput): Explanation | undefined {
  const { output, summary = "" } = step;
  if (/^exit (?:status|code) 0$/.test(summary.trim())) return undefined;
  const printed = linesOf(output);
  const summarized = summary.trim() === "" ? [] : linesOf(summary);
  const winner = chosen(printed, summarized.length > 0);
  const isTelling = winner !== undefined && winner.kind !== "hollow";
  const fromSummary = isTelling && winner.score >= 40 ? undefined : explainSummary(summarized, step);
  if (fromSummary !== undefined) return stoppedOr(fromSummary, printed);
  if (winner !== undefined) return exitedOr(stoppedOr(explained(printed, winner, step), printed), printed);
  if (summarized.length === 0) return undefined;
  return exitedOr(unknownCause(printed, summarized, step), printed);
}

/** Whether a text says by itself why something failed. The last line of output that is half read does not. */
export function saysWhy(text: string): boolean {
  const winner = chosen(linesOf(text), false);
  return winner !== undefined && winner.kind !== "hollow";
}

/** Whether a text says at most that something failed. */
export function saysNothing(text: string): boolean {
  return linesOf(text).every(({ bare }) => bare === "" || isHollow(bare));
}

const exitCode = /\bexit(?: status| code|ed with) \d{1,3}$/;

/** If a command printed nothing, its exit code is all that is known. */
function exitedOr(found: Explanation, printed: readonly Line[]): Explanation {
  const isSilent = printed.every(({ bare }) => bare === "" || announcement.test(bare) || isHollow(bare));
  const isExit = found.reason === "other" && isSilent && exitCode.test(found.cause);
  return isExit ? { ...found, reason: "exit code only" } : found;
}

const endedBySignal = /\bsignal: (?:killed|terminated|interrupt)/;
const wasCancelled = /^Build \[[^\]]{1,200}\] was cancell?ed$/;

/** A process that a signal ended may have run out of memory, unless its builder says that it was stopped. */
function stoppedOr(found: Explanation, printed: readonly Line[]): Explanation {
  const isStopped = endedBySignal.test(found.cause) && printed.some(({ bare }) => wasCancelled.test(bare));
  return isStopped ? { ...found, reason: "cancelled" } : found;
}

function explained(lines: readonly Line[], winner: Candidate, step: StepOutput): Explanation {
  const line = lines[winner.index];
  const place = locate(lines, winner);
  const reason = reasonFor({
    kind: winner.kind,
    shape: winner.reason,
    text: line?.bare ?? "",
    near: lines.slice(winner.index + 1, winner.index + 6).map(({ bare }) => bare),
    file: place?.file,
    step: step.step,
    summary: step.summary ?? "",
  });
  return {
    cause: line?.text.trim() ?? "",
    reason,
    file: place?.file ?? null,
    line: place?.line ?? null,
    advice: adviceFor(lines, winner.index),
  };
}

/** A summary that says more than that something failed. */
function explainSummary(summarized: readonly Line[], step: StepOutput): Explanation | undefined {
  const winner = chosen(summarized, true);
  if (winner !== undefined && winner.kind !== "hollow") return explained(summarized, winner, step);
  const meant = summarized.findIndex(({ bare }) => !isHollow(bare) && meaningOf(bare) !== undefined);
  if (meant < 0) return undefined;
  return explained(summarized, { index: meant, kind: "phrase", score: 0, reason: undefined }, step);
}

/** What a tool prints before it runs a command says nothing about the command's end. */
const announcement =
  /^(?:Running|Executing|Starting|Building)\b.{0,60}(?:: |\.{3}|…$)|^Found \[.{1,80}\] context, using|^Target platforms: \[/;

/** Quotes the last line of a step that failed without a word. */
function unknownCause(printed: readonly Line[], summarized: readonly Line[], step: StepOutput): Explanation {
  const last = printed.findLast(({ bare }) => bare !== "" && !announcement.test(bare)) ?? summarized[0] ?? lineOf("");
  return explained([last], { index: 0, kind: "phrase", score: 0, reason: undefined }, step);
}
