import { kinds } from "@tapedeck/shared/events/kinds";
import { sessionError } from "@tapedeck/shared/events/session-check";
import { kindMatches } from "@tapedeck/shared/filter/filter";
import { ownValue } from "@tapedeck/shared/own-value";
import type { SinkDefinition } from "./definition.ts";
import { mappedKinds } from "./format/cdevents/cd-facts.ts";
import { chatKinds } from "./format/chat/chat-state.ts";
import { sentKinds } from "./format/otlp/otlp-kinds.ts";

type Filtered = Pick<SinkDefinition, "format" | "cdevents" | "live" | "filter">;

/** Why a sink's filter can match no event for which its format sends something; undefined: it can. */
export function filterError(sink: Filtered): string | undefined {
  const { kinds: patterns, subjects, outcomes, sessions = [] } = sink.filter;
  for (const session of sessions) {
    const error = sessionError(session);
    if (error !== undefined) return `sessions: ${error}`;
  }
  const sent = patternsOf(sink);
  const chosen = kinds.filter((kind) => isOneOf(sent, kind) && isOneOf(patterns, kind));
  if (chosen.length === 0) return `kinds: ${unsentError(sink, patterns ?? [])}`;
  if (subjects !== undefined && !chosen.some(hasSubject))
    return `subjects: ${chosen.join(", ")} ${chosen.length === 1 ? "has" : "have"} no subject`;
  // A subject alone is meant for the steps of loops, whose ends are nothing that a trace is sent for.
  if (subjects !== undefined && patterns === undefined && sink.format === "otlp") return `subjects: ${ofTraces}`;
  const withOutcome = outcomes?.some((outcome) => chosen.some((kind) => mayEnd(kind, outcome))) ?? true;
  return withOutcome ? undefined : `outcomes: no ${chosen.join(", ")} has the outcome ${outcomes?.join(" or ")}`;
}

const ofTraces =
  "a trace is sent when its run ends, and the end of a loop has no subject: leave it out, or add the kinds of runs that have one, command.finished or pod.exited";

function patternsOf({ format, cdevents = false, live = false }: Filtered): readonly string[] | undefined {
  switch (format) {
    case "webhook":
      return cdevents ? mappedKinds : undefined;
    case "otlp":
      return sentKinds(live);
    case "slack":
    case "chat":
      return chatKinds;
  }
}

/** Names what would be sent: the kinds with the verbs that were written, if there are any. */
function unsentError(sink: Filtered, patterns: readonly string[]): string {
  const sent = patternsOf(sink) ?? [];
  const verbs = patterns.map((pattern) => `*.${pattern.split(".")[1] ?? "*"}`);
  const similar = kinds.filter((kind) => isOneOf(sent, kind) && isOneOf(verbs, kind) && !verbs.includes("*.*"));
  const [first = "loop.*"] = similar;
  const name = sink.format === "webhook" ? "a webhook of CDEvents" : sink.format;
  const when = sink.format === "otlp" ? ", as a trace is sent when its run ends" : "";
  return `${name} sends nothing for ${patterns.join(", ")}, only for ${sent.join(", ")}${when}: write ${first}`;
}

function isOneOf(patterns: readonly string[] | undefined, kind: string): boolean {
  return patterns === undefined || patterns.some((pattern) => kindMatches(pattern, kind));
}

function hasSubject(kind: string): boolean {
  return !/^(loop\..*|session\.(started|ended|lost))$/.test(kind);
}

/** Other kinds may have any outcome. A job that succeeded has that of its command. */
const outcomesOf: Readonly<Record<string, readonly string[]>> = {
  started: [],
  queued: [],
  written: [],
  succeeded: ["succeeded"],
  failed: ["failed"],
  canceled: ["canceled"],
};

function mayEnd(kind: string, outcome: string): boolean {
  const [, verb = ""] = kind.split(".");
  return kind === "job.succeeded" || (ownValue(outcomesOf, verb)?.includes(outcome) ?? true);
}
