import { LogLevel, StatusCode, SuggestionCode } from "@tapedeck/proto/skaffold/enums/enums";
import type { Event, MirrorDetail, OperationRef } from "@tapedeck/proto/tapedeck/v1/event";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { Fact, Moment } from "../upstream.ts";

// An event holds the frame (up to 7 MiB) and these fields, and must fit the log's 8 MB: so no field may grow with its
// frame. The whole text is in the frame.
const nameLimit = 1_000;
const messageLimit = 50_000;
const textLimit = 100_000;
const summaryLimit = 200;
const suggestionsLimit = 20;

const statusCodes = namesOf(StatusCode);
const suggestionCodes = namesOf(SuggestionCode);
const logLevels = namesOf(LogLevel);

export type ActionableErr = {
  readonly errCode: number;
  readonly message: string;
  readonly suggestions: readonly { readonly suggestionCode: number; readonly action: string }[];
};

/**
 * An error as told by its parts; undefined when nothing is told. Code 0 ("OK", which is also how the wire says
 * "not set") gives an empty code: a failure with code OK would only mislead.
 */
export function errorOf(actionable: ActionableErr | undefined, err = "", errCode = 0): Event["error"] {
  const code = actionable?.errCode || errCode;
  const message = actionable?.message || err;
  const suggestions = actionable?.suggestions ?? [];
  if (code === 0 && message === "" && suggestions.length === 0) return undefined;
  return {
    code: code === 0 ? "" : nameOf(statusCodes, code),
    message: cut(message, messageLimit),
    suggestions: suggestions
      .slice(0, suggestionsLimit)
      .map(({ action, suggestionCode }) => name(action || nameOf(suggestionCodes, suggestionCode))),
  };
}

export function levelName(level: number): string {
  return nameOf(logLevels, level);
}

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

export function mirror(what: string, detail: Partial<Omit<MirrorDetail, "what">> = {}): Fact {
  const { status = "", task_id = "", subtask_id = "" } = detail;
  return {
    kind: "mirror.received",
    summary: summary([what || "empty event", task_id, subtask_id, status].filter(Boolean).join(" ")),
    detail: {
      $case: "mirror",
      value: { what: name(what), status: name(status), task_id: name(task_id), subtask_id: name(subtask_id) },
    },
  };
}

export function unreadable(bytes: Uint8Array, cause: unknown): Fact {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return { kind: "upstream.unreadable", summary: summary(`${bytes.length} bytes that can't be read: ${reason}`) };
}

/** An event type that came after this description of the API: its field number, or "" for an event without type. */
export function laterType(
  message: { _unknownFields?: { [tag: number]: Uint8Array[] } | undefined } | undefined,
): string {
  const tag = Object.keys(message?._unknownFields ?? {})[0];
  return tag === undefined ? "" : `field ${Number(tag) >>> 3}`;
}

/** The loop that an event belongs to; without `kind` when it stands outside of loops. */
export function within(runner: number, loop: number): OperationRef {
  return { kind: loop === 0 ? "" : "loop", subject: "", runner, loop };
}

/** The upstream's time of an event; undefined when it has none that a clock could show. */
export function momentFrom(timestamp: Moment | undefined): Moment | undefined {
  if (timestamp === undefined) return undefined;
  const { seconds, nanos } = timestamp;
  const isTime = seconds >= -62_135_596_800n && seconds < 253_402_300_800n && nanos >= 0 && nanos < 1_000_000_000;
  return isTime ? { seconds, nanos } : undefined;
}

/** Names of artifacts, resources, statuses …: short in reality, whatever a Handle call sends. */
export function name(text: string): string {
  return cut(text, nameLimit);
}

export function message(text: string): string {
  return cut(text, messageLimit);
}

/** Text that was printed: verbatim up to far more than the 32 KiB that Skaffold writes at once. */
export function text(printed: string): string {
  return cut(printed, textLimit);
}

export function summary(line: string): string {
  return cut(line, summaryLimit);
}

/** The first line with something on it, without colours and other control characters. */
export function firstLine(printed: string): string {
  // Much more than a summary takes, and bounded: text may be megabytes of blank lines.
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

function namesOf(values: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(values).map(([key, value]) => [value, key]));
}

function nameOf(names: ReadonlyMap<number, string>, value: number): string {
  return value === -1 ? "-1" : (names.get(value) ?? String(value));
}
