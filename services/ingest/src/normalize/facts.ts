import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { Fact } from "./fact.ts";

// The parts of every upstream's facts. An event holds the frame (up to 7 MiB) and its fields, and must fit the log's 8
// MB: so no field may grow with its frame. The whole text is in the frame.
const nameLimit = 1_000;
const messageLimit = 50_000;
const textLimit = 100_000;
const summaryLimit = 200;

export const succeeded = { outcome: Outcome.OUTCOME_SUCCEEDED } as const;
export const canceled = { outcome: Outcome.OUTCOME_CANCELED } as const;

export function failed(error: Event["error"]) {
  return { outcome: Outcome.OUTCOME_FAILED, error: error ?? { code: "", message: "", suggestions: [] } };
}

/** "build of web failed" and, if the error has text, its first line. */
export function failure(what: string, error: Event["error"]): string {
  const message = firstLine(error?.message ?? "");
  return summary(message === "" ? `${what} failed` : `${what} failed: ${message}`);
}

export function unreadable(bytes: Uint8Array, cause: unknown): Fact {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return { kind: "upstream.unreadable", summary: summary(`${bytes.length} bytes that can't be read: ${reason}`) };
}

/** Names of artifacts, resources, statuses …: short in practice, whatever a Handle call sends. */
export function name(text: string): string {
  return cut(text, nameLimit);
}

export function message(text: string): string {
  return cut(text, messageLimit);
}

/** Printed text: verbatim up to far more than the 32 KiB that Skaffold writes at once. */
export function text(printed: string): string {
  return cut(printed, textLimit);
}

export function summary(line: string): string {
  return cut(line, summaryLimit);
}

/** The first line that is not blank, without colours and other control characters. */
export function firstLine(printed: string): string {
  // Far more than a summary needs, and bounded: text may be megabytes of blank lines.
  const visible = printed.slice(0, 4_000).replace(terminalSequence, "");
  for (const line of visible.split(/[\r\n]/)) {
    const trimmed = line.replace(controlCharacter, " ").trim();
    if (trimmed !== "") return trimmed;
  }
  return "";
}

const esc = "\u001b";
const terminalSequence = new RegExp(`${esc}(?:\\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[@-Z\\\\-_])`, "g");
const controlCharacter = /\p{Cc}/gu;

function cut(whole: string, limit: number): string {
  return whole.length <= limit ? whole : `${whole.slice(0, limit - 1).toWellFormed()}…`;
}
