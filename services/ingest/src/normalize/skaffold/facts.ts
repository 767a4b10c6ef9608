import { LogLevel, StatusCode, SuggestionCode } from "@tapedeck/proto/skaffold/enums/enums";
import type { Event, MirrorDetail, OperationRef } from "@tapedeck/proto/tapedeck/v1/event";
import type { Fact } from "../fact.ts";
import { message as cutMessage, name, summary } from "../facts.ts";

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
 * An error from its parts; undefined if all are empty. Code 0 ("OK", which on the wire also means "not set") gives an
 * empty code: a failure with code OK would only mislead.
 */
export function errorOf(actionable: ActionableErr | undefined, err = "", errCode = 0): Event["error"] {
  const code = actionable?.errCode || errCode;
  const message = actionable?.message || err;
  const suggestions = actionable?.suggestions ?? [];
  if (code === 0 && message === "" && suggestions.length === 0) return undefined;
  return {
    code: code === 0 ? "" : nameOf(statusCodes, code),
    message: cutMessage(message),
    suggestions: suggestions
      .slice(0, suggestionsLimit)
      .map(({ action, suggestionCode }) => name(action || nameOf(suggestionCodes, suggestionCode))),
  };
}

export function levelName(level: number): string {
  return nameOf(logLevels, level);
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

/** An event type that came after this description of the API: its field number, or "" for an event without type. */
export function laterType(
  message: { _unknownFields?: { [tag: number]: Uint8Array[] } | undefined } | undefined,
): string {
  const tag = Object.keys(message?._unknownFields ?? {})[0];
  return tag === undefined ? "" : `field ${Number(tag) >>> 3}`;
}

/** The loop that an event belongs to; without `kind` outside loops. */
export function loopRef(runner: number, loop: number): OperationRef {
  return { kind: loop === 0 ? "" : "loop", subject: "", runner, loop };
}

function namesOf(values: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(values).map(([key, value]) => [value, key]));
}

function nameOf(names: ReadonlyMap<number, string>, value: number): string {
  return value === -1 ? "-1" : (names.get(value) ?? String(value));
}
