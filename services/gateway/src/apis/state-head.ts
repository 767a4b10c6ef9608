import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import type { AnswerHead } from "../call-context.ts";
import type { ReadState } from "../query-client.ts";

/** When each collection was heard last, RFC 3339. */
export function timesJson(times: Readonly<Record<string, Timestamp>>): Record<string, string> {
  return Object.fromEntries(Object.entries(times).map(([name, time]) => [name, timeToJson(time)]));
}

/** The head of an answer about state. */
export function stateHead({
  position,
  session,
  session_ended,
  not_heard_since,
  heard_at,
}: Omit<ReadState["head"], "source">): AnswerHead {
  const notHeardSince = not_heard_since && timeToJson(not_heard_since);
  return {
    position,
    session,
    sessionEnded: session_ended,
    heardAt: timesJson(heard_at),
    ...(notHeardSince !== undefined && { notHeardSince }),
  };
}
